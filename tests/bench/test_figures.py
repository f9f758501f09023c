"""The arithmetic of the bench's table, and the packing of its requests.
Not here: measuring (python -m tests.bench).
"""

import math
from pathlib import Path

from tests.bench.figures import (
    Line,
    as_markdown,
    as_text,
    at_least,
    at_most,
    middle,
    of_limit,
    percentile,
    told,
)
from tests.bench.load import Deck, read_requests, whole_answer
from tests.bench.traffic import EVENT_BYTES, bearer_event, event, pack


# A share that is exactly what is asked is enough, and a hair less is not.
def test_a_share_of_the_limit_decides() -> None:
    assert of_limit("events", 1000, 400, percent=40).reached is True
    assert of_limit("events", 1000, 399, percent=40).reached is False
    assert of_limit("events", 1000, 400, percent=40).share == "40%"


# Without a limit nothing is reached, and nothing is divided by it.
def test_a_limit_of_nothing_is_never_reached() -> None:
    assert of_limit("events", 0, 400, percent=40).reached is False


# A target of its own is told beside the limit, where there is one.
def test_targets_of_their_own() -> None:
    assert at_least("effects", 10_000, target=10_000).cells == (
        "effects",
        "–",
        "10,000/s",
        "–",
        "≥ 10,000/s",
        "yes",
    )
    assert at_least("effects", 9_999, target=10_000, limit=20_000).share == "50%"
    assert at_most("idle", 0.51, 0.5, "%").reached is False


# A figure that is only told is neither good nor bad.
def test_reported_figures_are_not_judged() -> None:
    assert told("bytes", "7,000 bytes").cells[-1] == "–"


# The nearest rank: the hundredth of a hundred is the largest, of few values as well.
def test_percentiles() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 100)) == (50, 99, 100)
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7
    assert math.isnan(percentile([], 50))
    assert math.isnan(middle([]))


# Both tables say the same of each line.
def test_tables() -> None:
    lines = [Line("a", "1/s", "2/s", "200%", "≥ 1/s", reached=True), told("bb", "3")]
    assert as_text(lines).splitlines()[1].split() == ["a", "1/s", "2/s", "200%", "≥", "1/s", "yes"]
    assert "| bb | – | 3 | – | reported | – |" in as_markdown(lines)


# What is packed comes out again whole, whatever it holds, and is dealt once or for ever.
def test_requests_are_packed_and_dealt(tmp_path: Path) -> None:
    given = [b"one\n2", b"", b"12\nthree"]
    file = pack(tmp_path / "deck", given)
    assert read_requests(file.read_bytes()) == given
    once, again = Deck(file, once=True), Deck(file, once=False)
    assert [once.deal() for _ in range(4)] == [*given, None]
    assert [again.deal() for _ in range(4)] == [*given, given[0]]


# An answer is whole when as many bytes have come as it says it has.
def test_answers_are_read_whole() -> None:
    head = b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\n"
    assert whole_answer(head[:20]) == whole_answer(head + b"abc") == 0
    assert whole_answer(head + b"abcd") == 202
    assert whole_answer(b"HTTP/1.1 200 OK\r\n\r\n") == 200


# An event is as large as it says, and each is its own.
def test_events_are_of_one_kilobyte() -> None:
    one, two = bearer_event(event(1, run="a")), bearer_event(event(2, run="a"))
    assert one != two
    assert EVENT_BYTES - 20 <= len(one.partition(b"\r\n\r\n")[2]) <= EVENT_BYTES
