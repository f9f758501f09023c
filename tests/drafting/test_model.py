"""The call over real HTTP against the pretend model: every row of the matrix, requests on the wire counted.

Not here: extraction and checking alone (test_extract, test_check).
"""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from bot.demo import model_script as say
from bot.demo.model import ModelServer
from bot.demo.model_script import Script, Step
from bot.drafting.ask import TOTAL_SECONDS
from bot.drafting.faults import (
    DraftFault,
    Misconfigured,
    NotDelivered,
    NotJson,
    ProviderFault,
    QuotaGone,
    Refused,
    SoftFailure,
    Spent,
    Throttled,
    TimedOut,
    WrongJson,
)
from bot.drafting.model import Ask, Endpoint, ModelClient, longest_wait_seconds
from bot.drafting.prompt import Redraft, prompt_version
from bot.policy.clauses import Rule
from store.database import _in_transaction
from store.errors import NetworkInTransaction
from tests.drafting.conftest import ASK, D0, SCHEMA, Naps

WRONG = "WRONG"


def _said(script: Script, request: int) -> str:
    return json.dumps(list(script.journal)[request].body["messages"], ensure_ascii=False)


def _rule(level: Literal["hard", "warn"], label: str) -> Rule:
    return Rule(level=level, path="output.label", op="equals", value=label, message="Look at the label.")


async def _fault(client: ModelClient, request: Ask = ASK) -> DraftFault:
    with pytest.raises(DraftFault) as caught:
        await client.ask(request)
    return caught.value


# A well-behaved model is asked once, and the answer names model, fingerprint, prompt version and tokens.
async def test_one_request(client: ModelClient, script: Script, d0: str) -> None:
    script.then(say.say(d0))
    answer = await client.ask(ASK)
    assert answer.output == D0
    assert (answer.model, answer.fingerprint) == (say.MODEL_NAME, say.FINGERPRINT)
    assert answer.prompt_version == prompt_version(ASK.prompt)
    assert answer.prompt_tokens > 0
    assert answer.completion_tokens > 0
    assert (answer.turns, answer.requests, script.requests) == (1, 1, 1)
    assert answer.provider == "openai-compatible"


# Without orders the pretend model writes a draft that passes the kind's schema and speaks of the payload.
async def test_the_stand_in_makes_sense(client: ModelClient, script: Script) -> None:
    answer = await client.ask(ASK)
    assert answer.output["subject"] == "Re: Late parcel"
    assert "Where is it?" in answer.output["body"]


# The request carries the schema as response_format, the kind's token limit, and its model if it names one.
async def test_what_is_sent(client: ModelClient, script: Script) -> None:
    await client.ask(replace(ASK, model="better-2"))
    sent = script.journal[0].body
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
    assert sent["response_format"]["json_schema"]["name"] == "customer_email"
    assert (sent["max_tokens"], sent["model"]) == (500, "better-2")
    assert script.journal[0].authorized


# F008: prose, fences and a thinking block with braces in it leave exactly D0, and nothing of the thinking.
@pytest.mark.parametrize(
    "step",
    [
        say.fenced(json.dumps(D0)),
        Step(
            content=json.dumps(D0),
            wrap='<think>maybe {{"subject":"WRONG","body":"x"}}</think>\n```json\n{}\n```',
        ),
        say.thinking('maybe {"subject":"WRONG","body":"x"}', json.dumps(D0)),
    ],
)
async def test_wrapped_answers(
    client: ModelClient, script: Script, step: Step, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script.then(step)
    answer = await client.ask(ASK)
    assert answer.output == D0
    assert WRONG not in repr(answer) + str(answer.output) + caplog.text
    assert script.requests == 1


# F009: empty or cut visible content is repaired twice and then ends; reasoning is never taken.
@pytest.mark.parametrize(
    ("step", "detail"),
    [
        (say.empty('{"subject":"A","body":"B","label":"other","needs_human":true}'), "empty"),
        (say.empty(json.dumps(D0), name="reasoning_content", content=None), "empty"),
        (say.truncated('{"subject":"Hi","body":"We will ref'), "truncated"),
        (say.truncated(json.dumps(D0)), "truncated"),
        (say.say(f"<think>{json.dumps(D0)}"), "empty"),
    ],
)
async def test_empty_and_truncated(client: ModelClient, script: Script, step: Step, detail: str) -> None:
    script.always(step)
    fault = await _fault(client)
    assert isinstance(fault, NotJson)
    assert fault.detail == detail
    assert script.requests == 3


# F009: a model that recovers after an empty answer is taken; all its turns and tokens are counted.
async def test_repair_succeeds(client: ModelClient, script: Script, d0: str) -> None:
    script.then(say.empty("hm"), say.say("I would rather talk."), say.say(d0))
    answer = await client.ask(ASK)
    assert answer.output == D0
    assert (answer.turns, answer.requests, script.requests) == (3, 3, 3)
    assert answer.completion_tokens == sum(len(text) // 4 + 1 for text in ("", "I would rather talk.", d0))


# F010: a server that rejects response_format is asked once more without it, and from then on never with it.
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_format_rejected(client: ModelClient, script: Script, status: int) -> None:
    script.always(say.fail_on_format(status))
    answer = await client.ask(ASK)
    assert answer.output["label"] == "shipping"
    assert (answer.requests, script.requests) == (2, 2)
    await client.ask(ASK)
    assert script.requests == 3
    assert ["response_format" in each.body for each in script.journal] == [True, False, False]


# F010: what one model rejects, another model of the same endpoint is still asked for.
async def test_format_is_remembered_by_model(client: ModelClient, script: Script) -> None:
    script.then(say.fail_on_format(400))
    await client.ask(ASK)
    await client.ask(replace(ASK, model="other"))
    assert ["response_format" in each.body for each in script.journal] == [True, False, True]


# F010: a server that refuses with and without the format is misconfigured, and nothing is remembered.
async def test_format_was_not_the_reason(client: ModelClient, script: Script) -> None:
    script.then(say.fail(400, "bad response_format"), say.fail(400, "bad anyway"))
    assert isinstance(await _fault(client), Misconfigured)
    assert script.requests == 2
    await client.ask(ASK)
    assert "response_format" in script.journal[-1].body


# F010: a server that takes response_format and ignores it is caught by our own validation.
async def test_format_ignored(client: ModelClient, script: Script) -> None:
    script.always(say.say("Sure! Your parcel ships Monday."))
    fault = await _fault(client)
    assert (type(fault), fault.detail, script.requests) == (NotJson, "prose", 3)


# F011: nothing is coerced; each of these fails, and a bare True does not even parse.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({**D0, "needs_human": "false"}), WrongJson),
        (json.dumps({**D0, "needs_human": "no"}), WrongJson),
        (json.dumps({**D0, "needs_human": 1}), WrongJson),
        (json.dumps(D0).replace("false", "True"), NotJson),
        (json.dumps({**D0, "label": "Shipping "}), WrongJson),
        (json.dumps({**D0, "mood": "calm"}), WrongJson),
    ],
)
async def test_no_coercion(
    client: ModelClient, script: Script, text: str, expected: type[DraftFault]
) -> None:
    script.always(say.say(text))
    assert isinstance(await _fault(client), expected)
    assert script.requests == 3


# F006: NUL and half a surrogate pair in the answer are repaired, and never leave the room.
@pytest.mark.parametrize("body", [r"a\u0000b", r"x\ud83d"])
async def test_text_that_cannot_be_stored(client: ModelClient, script: Script, d0: str, body: str) -> None:
    script.then(say.say(d0.replace("It ships Monday.", body)), say.say(d0))
    answer = await client.ask(ASK)
    assert answer.output == D0
    assert script.requests == 2


# F012a: a server that accepts and never answers gets exactly two requests, then it is a timeout.
async def test_hang(client: ModelClient, script: Script, naps: Naps, hasty: Ask) -> None:
    script.always(Step(how=say.HANG))
    fault = await _fault(client, hasty)
    assert isinstance(fault, TimedOut)
    assert (script.requests, len(naps.seconds)) == (2, 1)
    assert fault.spent == Spent(turns=1, requests=2)


# F012: the published bound covers three tries in each of three turns, within what a claim may take.
def test_published_bound() -> None:
    assert longest_wait_seconds(1) == 3 * (3 + 1.5 * 5) + 1
    assert longest_wait_seconds(600) == TOTAL_SECONDS


# F012b: used-up quota is asked exactly once.
async def test_quota(client: ModelClient, script: Script, naps: Naps) -> None:
    script.always(say.fail(429, "You exceeded your quota", code="insufficient_quota", retry_after="1"))
    assert isinstance(await _fault(client), QuotaGone)
    assert (script.requests, naps.seconds) == (1, [])


# F012c: a rate limit frees the worker at once with the time to come back; the next ask succeeds.
async def test_rate_limit(client: ModelClient, script: Script, naps: Naps, d0: str) -> None:
    script.then(say.fail(429, code="rate_limit_exceeded", retry_after="1"), say.say(d0))
    fault = await _fault(client)
    assert (type(fault), fault.retry_after_seconds, script.requests, naps.seconds) == (Throttled, 1.0, 1, [])
    assert (await client.ask(ASK)).output == D0
    assert script.requests == 2


# A 429 without a header that can be read still says when to come back.
@pytest.mark.parametrize("header", ["", "soon"])
async def test_rate_limit_without_time(client: ModelClient, script: Script, header: str) -> None:
    script.then(say.fail(429, retry_after=header))
    assert (await _fault(client)).retry_after_seconds == 30.0


# A failing endpoint is tried three times with growing, jittered waits; the class tells what it was.
@pytest.mark.parametrize(
    ("step", "expected", "detail"),
    [
        (say.fail(408), NotDelivered, "http_408"),
        (say.fail(425), NotDelivered, "http_425"),
        (say.fail(500), ProviderFault, "http_500"),
        (say.fail(503, retry_after="7"), ProviderFault, "http_503"),
        (Step(how=say.DROP_UNREAD), ProviderFault, "connection_cut"),
        (Step(how=say.DROP), ProviderFault, "connection_cut"),
        (Step(how=say.CUT), ProviderFault, "connection_cut"),
        (say.ERROR_IN_200, ProviderFault, "error_in_200"),
        (say.NO_CHOICES, ProviderFault, "no_choices"),
        (say.NOT_JSON, ProviderFault, "not_json_http"),
    ],
)
async def test_three_tries(  # noqa: PLR0917 - fixtures and three parameters
    client: ModelClient, script: Script, naps: Naps, step: Step, expected: type[DraftFault], detail: str
) -> None:
    script.always(step)
    fault = await _fault(client)
    assert (type(fault), fault.detail, script.requests) == (expected, detail, 3)
    assert naps.seconds == [1.0 * 1.25, 4.0 * 1.25]


# A failure that passes costs a request and no repair.
async def test_recovers(client: ModelClient, script: Script, d0: str) -> None:
    script.then(say.fail(502), Step(how=say.DROP), say.say(d0))
    answer = await client.ask(ASK)
    assert (answer.output, answer.turns, answer.requests) == (D0, 1, 3)


# A port where nobody listens, and a name that does not exist, are not delivered, three times.
@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
async def test_not_delivered(naps: Naps, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    endpoint = Endpoint(api_key="sk-pretend", base_url=f"http://{host}:{port}/v1", model="m")
    async with ModelClient(endpoint, pace=naps.pace()) as client:
        fault = await _fault(client)
    assert isinstance(fault, NotDelivered)
    assert (len(naps.seconds), fault.spent.requests) == (2, 3)


# A server that does not speak TLS is not delivered.
async def test_no_tls(script: Script, model_server: ModelServer, naps: Naps) -> None:
    base_url = model_server.base_url.replace("http://", "https://")
    async with ModelClient(Endpoint(api_key="k", base_url=base_url, model="m"), pace=naps.pace()) as client:
        assert isinstance(await _fault(client), NotDelivered)
    assert script.requests == 0


# Every other 4xx is a configuration error after one request.
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 409, 413, 422])
async def test_misconfigured(client: ModelClient, script: Script, status: int) -> None:
    script.always(say.fail(status, "no such model: gpt-payload-text"))
    fault = await _fault(client)
    assert (type(fault), fault.status, script.requests) == (Misconfigured, status, 1)
    assert "payload-text" not in f"{fault}{fault!r}{fault.__cause__!r}"


# A redirect is not followed: key and event stay with the configured host.
async def test_redirect(client: ModelClient, script: Script) -> None:
    script.always(say.REDIRECT)
    fault = await _fault(client)
    assert (type(fault), fault.detail, script.requests) == (Misconfigured, "redirect", 1)


# A refusal and a content filter end at once, without repair, however the endpoint says it.
@pytest.mark.parametrize("step", [say.refuse(), say.filtered(), say.fail(400, code="content_filter")])
async def test_refused(client: ModelClient, script: Script, step: Step) -> None:
    script.always(step)
    assert isinstance(await _fault(client), Refused)
    assert script.requests == 1


# The repair turn shows the model its own answer without reasoning and the fault, once, not a growing history.
async def test_repair_turn(client: ModelClient, script: Script, changed: Callable[..., str]) -> None:
    script.always(say.thinking("secret plan", changed(label="Shipping ")))
    fault = await _fault(client)
    roles = [[each["role"] for each in heard.body["messages"]] for heard in script.journal]
    assert roles == [["system", "user"], *[["system", "user", "assistant", "user"]] * 2]
    assert "Shipping " in _said(script, 1)
    assert "$.label must be exactly one of" in _said(script, 1)
    assert "secret plan" not in _said(script, 1)
    assert "Shipping" not in f"{fault}{fault!r}"


# F032: a subject that would break a mail header is repaired like wrong JSON, before anybody sees it.
@pytest.mark.parametrize("subject", ["Hi\r\nBcc: x@example.test", "Hi\rthere", "Hi\u2028there"])
async def test_unsendable(
    client: ModelClient, script: Script, changed: Callable[..., str], subject: str
) -> None:
    script.then(say.say(changed(subject=subject)), say.say(changed()))
    answer = await client.ask(ASK)
    assert (answer.output, script.requests) == (D0, 2)
    assert "output.subject must be one line" in _said(script, 1)


# A hard rule that stays broken ends as a soft failure after two repairs.
async def test_hard_rule_stays(client: ModelClient, script: Script) -> None:
    fault = await _fault(client, replace(ASK, rules=(_rule("hard", "refund"),)))
    assert (type(fault), fault.detail, script.requests) == (SoftFailure, "hard_rule", 3)
    assert "Look at the label." in _said(script, 2)
    assert "Look" not in f"{fault}{fault!r}"


# A warning does not stop the draft; it travels with the answer.
async def test_warning(client: ModelClient, script: Script) -> None:
    answer = await client.ask(replace(ASK, rules=(_rule("warn", "shipping"),)))
    assert [each.message for each in answer.verdict.warnings] == ["Look at the label."]
    assert (answer.verdict.allowed, script.requests) == (False, 1)


# A redraft shows the text that was seen and the wish, and gives a full draft again.
async def test_redraft(client: ModelClient, script: Script) -> None:
    answer = await client.ask(replace(ASK, redraft=Redraft(previous=D0, wish="Say it shorter")))
    assert "Say it shorter" in answer.output["body"]
    assert "It ships Monday." in _said(script, 0)


# The answer is bounded: more than 64 KiB is refused before it is parsed.
async def test_too_large(client: ModelClient, script: Script, changed: Callable[..., str]) -> None:
    script.always(say.say(changed(body="x" * 70_000)))
    fault = await _fault(client)
    assert (type(fault), fault.detail) == (NotJson, "too_large")
    assert max(len(_said(script, request)) for request in range(3)) < 20_000


# Whoever waits for the model can do other things meanwhile, like renewing a lease.
async def test_others_go_on(client: ModelClient, script: Script) -> None:
    script.then(Step(how=say.HOLD))
    asking = asyncio.create_task(client.ask(ASK))
    await script.arrived(1)
    assert not asking.done()
    script.release()
    assert (await asking).output["label"] == "shipping"


# A stop of the process aborts the call: it ends cancelled, not as a fault, and nothing is asked again.
async def test_cancelled(client: ModelClient, script: Script) -> None:
    script.always(Step(how=say.HANG))
    asking = asyncio.create_task(client.ask(ASK))
    await script.arrived(1)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    assert asking.cancelled()
    assert script.requests == 1


# The total over all tries is bounded too, whatever each single request may take.
async def test_total_deadline(client: ModelClient, script: Script) -> None:
    script.always(Step(how=say.HANG))
    fault = await _fault(client, replace(ASK, total_seconds=0.05))
    assert (type(fault), fault.detail, fault.spent.requests) == (TimedOut, "total", 1)


# Inside a database transaction the model is not asked.
async def test_not_in_a_transaction(client: ModelClient, script: Script) -> None:
    mark = _in_transaction.set(True)
    try:
        with pytest.raises(NetworkInTransaction):
            await client.ask(ASK)
    finally:
        _in_transaction.reset(mark)
    assert script.requests == 0


# Neither key nor event shows in the repr of anything that is passed around.
def test_nothing_shows() -> None:
    endpoint = Endpoint(api_key="sk-secret", base_url="http://x/v1", model="m")
    assert "sk-secret" not in repr(endpoint)
    assert "Where is it" not in repr(ASK)


# Doctor can ask which models there are, with the same faults as a draft.
async def test_list_models(client: ModelClient, naps: Naps) -> None:
    assert await client.list_models(timeout_seconds=30) == (say.MODEL_NAME,)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    away = Endpoint(api_key="", base_url=f"http://127.0.0.1:{port}/v1", model="m")
    async with ModelClient(away, pace=naps.pace()) as nobody:
        with pytest.raises(NotDelivered):
            await nobody.list_models(timeout_seconds=30)
