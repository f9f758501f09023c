"""Finding the one object in an answer: reasoning of many makes, prose, fences, and what is refused.

Not here: the same over HTTP (test_model).
"""

import json

import pytest

from bot.drafting.extract import MAX_ANSWER_BYTES, find_object, visible_text
from bot.drafting.faults import NotJson
from tests.drafting.conftest import D0

TEXT = json.dumps(D0)
BAD = '{"subject":"WRONG"}'


# Reasoning, prose and fences of every known make leave exactly the object.
@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        f"\ufeff {TEXT}\n\n",
        f"Here you go:\n```json\n{TEXT}\n```\nAnything else?",
        f"```\n{TEXT}\n```",
        f"<think>maybe {BAD}</think>\n```json\n{TEXT}\n```",
        f"<THINKING reason='x'>{BAD}</THINKING>{TEXT}",
        f"<reasoning>{BAD}</reasoning><answer>{TEXT}</answer>",
        f"<think>a <think>b</think> {BAD}</think>{TEXT}",
        f"so the draft is {BAD}, hm\n</think>\n{TEXT}",
        f"so {{not [{{ even json </think>{TEXT}",
        f"{TEXT}<think>was that right? {BAD}</think>",
        f"[THINK]{BAD}[/THINK]{TEXT}",
        f"<|channel|>analysis<|message|>{BAD}<|end|><|start|>assistant<|channel|>final<|message|>{TEXT}",
        f"<|channel>thought\n{BAD}<channel|>{TEXT}",
        f"analysis{BAD}assistantfinal{TEXT}",
        f"<|START_THINKING|>{BAD}<|END_THINKING|>{TEXT}",
        f"<|begin_of_thought|>{BAD}<|end_of_thought|>{TEXT}",
        f"◁think▷{BAD}◁/think▷{TEXT}",
        f"<seed:think>{BAD}</seed:think>{TEXT}",
        f"The set {{a, b}} and {{ {BAD} }} are braces in prose: {TEXT}",
    ],
)
def test_exactly_the_object(answer: str) -> None:
    assert find_object(answer) == D0


# Tags and braces inside the object's own strings are text and stay as they are.
def test_strings_stay() -> None:
    body = "Use <think>this</think> and {that} or ``` and [{x}] </think>"
    assert find_object(f"Sure: {json.dumps({'body': body})}") == {"body": body}


# Whatever is not exactly one strict JSON object is refused, with one stable word for why.
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (f"<think>{BAD}", "empty"),
        (f"<think>{BAD}</think>", "empty"),
        (f"{TEXT}</think>", "empty"),
        (f"<|channel|>analysis<|message|>{BAD}", "empty"),
        ("Sure! Your parcel ships Monday.", "prose"),
        ("{'subject': 'Python', 'meta': {\"a\": 1}}", "prose"),
        ("null", "prose"),
        (TEXT + TEXT, "several"),
        (f"{BAD} or rather {TEXT}", "several"),
        (f"[{TEXT}]", "list"),
        (f"[ \n{TEXT}, {TEXT}", "list"),
        ('{"subject":"Hi","body":"We will ref', "broken"),
        ('{"subject":"Hi","meta":{"a":1}', "broken"),
        ('{"subject":"Hi","meta":{"a":1},}', "broken"),
        (f'{{"subject":"Hi" <think>oh</think> {TEXT}', "broken"),
        (TEXT.replace("false", "True"), "broken"),
        ('{"a":"line\nbreak"}', "broken"),
        ('{"a":' + "9" * 5000 + "}", "broken"),
        (":-{ " + TEXT, "broken"),
        ('{"a":1,"a":2}', "not_strict"),
        ('{"a":NaN}', "not_strict"),
        ('{"a":-Infinity}', "not_strict"),
        (r'{"a":"x\ud83d"}', "not_strict"),
        ('{"a":"x\ud83d"}', "not_strict"),
        (r'{"a":"a\u0000b"}', "not_keepable"),
        (r'{"a\u0000b":1}', "not_keepable"),
        ('{"a":9007199254740993}', "not_keepable"),
        ('{"a":1e999}', "not_keepable"),
        ('{"a":' * 40 + "1" + "}" * 40, "not_keepable"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "too_deep"),
        (json.dumps({"a": "x" * MAX_ANSWER_BYTES}), "too_large"),
        (json.dumps({"a": "é" * (MAX_ANSWER_BYTES // 2)}, ensure_ascii=False), "too_large"),
    ],
)
def test_refused(answer: str, detail: str) -> None:
    with pytest.raises(NotJson) as caught:
        find_object(answer)
    assert caught.value.detail == detail
    assert caught.value.hints
    assert "WRONG" not in f"{caught.value}{caught.value!r}"


# The largest answer that is allowed is taken.
def test_largest() -> None:
    text = json.dumps({"a": "x" * (MAX_ANSWER_BYTES - 9)})
    assert len(text) == MAX_ANSWER_BYTES
    assert find_object(text)["a"][0] == "x"


# Half a pair of quotes around escapes and full pairs of surrogates are text like any other.
def test_full_pairs() -> None:
    assert find_object(r'{"a":"\ud83d\ude00 \u00e9 \""}') == {"a": '😀 é "'}


# What is shown to the model again is its answer without the reasoning, broken or not.
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("<think>secret</think>Hello", "Hello"),
        ("secret</think>Hello", "Hello"),
        ('{"a": <think>secret</think> oops', '{"a":  oops'),
        ("Hello<think>secret", "Hello"),
        ("", ""),
    ],
)
def test_visible_text(answer: str, shown: str) -> None:
    assert visible_text(answer) == shown
