"""The paths of the specification's table, each measured beside its limit.
Not here: memory, idle and cost (weights), or the table (figures).
"""

from pathlib import Path
from typing import Any

from tests.bench import rows
from tests.bench.figures import Line, at_least, at_most, middle, of_limit, percentile, told
from tests.bench.pgbench import bare_rate
from tests.bench.stage import Bench, Ground, run, served
from tests.bench.traffic import bearer_event, clicks, event, pack, signed_event

ROUNDS = 3
EVENT_CONNECTIONS = 64  # n8n opens one an execution; a burst is what the rate is about.
CLICK_CONNECTIONS = 16
EVENTS_A_SECOND = 12_000  # More than any machine takes, so that they do not run out.
KEPT_EVENTS = 2_000
CALM_CLICKS = 120
GAP_MS = 25  # Between two clicks of an idle bot: what the last one set off is over.
BUSY_CLICKS = 1_500
BARE_EFFECTS = 20_000
APPROVALS = 6_000
ALL_OF_THEM = {"once": True, "seconds": 60}
TO_SEND = """
SELECT 1000 * extract(epoch FROM e.started_at - a.consumed_at)::float
  FROM effect_outbox AS e JOIN approvals AS a ON a.draft_id = e.draft_id
 WHERE a.consumed_at > now() - interval '1 minute' AND a.token_hash IS NOT NULL AND e.started_at IS NOT NULL
"""


class Unfair(Exception):
    """Something else was answered than what is measured."""


async def events(bench: Bench) -> list[Line]:
    """Events accepted, beside the empty endpoint."""
    limits: list[float] = []
    ours: list[float] = []
    with bench.ground() as ground:
        async with served("tests.bench.limits", "empty") as empty, bench.stet(ground.dsn) as stet:
            for number in range(ROUNDS):
                name, many = f"{ground.base}-{number}", int(EVENTS_A_SECOND * bench.seconds)
                file = pack(bench.folder / "events", (bearer_event(event(n, run=name)) for n in range(many)))
                for server, found in ((empty, limits), (stet, ours)):
                    answers = await bench.load(server, file, connections=EVENT_CONNECTIONS, once=True)
                    found.append(_rate(answers, "202"))
    return [of_limit("events accepted (bearer, 1 KB)", middle(limits), middle(ours), percent=40)]


async def duplicates(bench: Bench) -> list[Line]:
    """Duplicates answered, beside the empty signed endpoint."""
    limits: list[float] = []
    ours: list[float] = []
    with bench.ground() as ground:
        async with served("tests.bench.limits", "signed") as empty, bench.stet(ground.dsn) as stet:
            made = (signed_event(event(n, run=f"{ground.base}-d")) for n in range(KEPT_EVENTS))
            file = pack(bench.folder / "duplicates", made)
            await bench.load(stet, file, connections=EVENT_CONNECTIONS, **ALL_OF_THEM)
            for _ in range(ROUNDS):
                for server, found, status in ((empty, limits, "202"), (stet, ours, "200")):
                    answers = await bench.load(server, file, connections=EVENT_CONNECTIONS)
                    found.append(_rate(answers, status))
    return [of_limit("duplicates answered (signed)", middle(limits), middle(ours), percent=60)]


async def calm_clicks(bench: Bench) -> list[Line]:
    """One click at a time on an idle bot: to the answer, and from the commit to the send."""
    with bench.ground() as ground:
        file = _questions(bench, ground, CALM_CLICKS)
        calm = ALL_OF_THEM | {"connections": 1, "gap_ms": GAP_MS}
        async with served("tests.bench.limits", "bolt") as empty:
            limit = await bench.load(empty, file, **calm)
        commit = rows.commit_ms(ground.dsn)
        async with bench.stet(ground.dsn) as stet:
            ours = await bench.load(stet, file, **calm)
        _check_decided(ground, CALM_CLICKS)
        waits = rows.values(ground.dsn, TO_SEND)
    more, shown = ours["p50_ms"] - limit["p50_ms"], f"{limit['p50_ms']:.2f} ms"
    return [
        told("a bare commit, one at a time: p50", f"{commit:.2f} ms"),
        at_most("click to answer, one at a time: p50 above the empty listener", more, 3, "ms", limit=shown),
        at_most("approval committed to send started, idle: p50", percentile(waits, 50), 5, "ms"),
        at_most("approval committed to send started, idle: p99", percentile(waits, 99), 20, "ms"),
    ]


async def busy_clicks(bench: Bench) -> list[Line]:
    """Sixteen at once; what they approve waits, for sending is measured by itself."""
    limits: list[float] = []
    ours: list[float] = []
    for _ in range(ROUNDS):
        with bench.ground() as ground:
            file = _questions(bench, ground, BUSY_CLICKS)
            how = ALL_OF_THEM | {"connections": CLICK_CONNECTIONS}
            async with served("tests.bench.limits", "bolt") as empty:
                limits.append(_rate(await bench.load(empty, file, **how), "200"))
            async with bench.stet(ground.dsn, AI_ACTIONS_ENABLED="false") as stet:
                ours.append(_rate(await bench.load(stet, file, **how), "200"))
            _check_decided(ground, BUSY_CLICKS)
    return [of_limit("clicks decided, 16 at once", middle(limits), middle(ours), percent=50)]


async def effects(bench: Bench) -> list[Line]:
    """Effects that nothing follows from, beside the same statements in pgbench."""
    with bench.ground() as ground:
        rows.fill(ground.dsn, bench.kind, rows.BARE, BARE_EFFECTS, base=ground.base)
        limit = await bare_rate(ground.dsn, bench.folder, BARE_EFFECTS)
    rates = [await _drained(bench, rows.BARE, BARE_EFFECTS) for _ in range(ROUNDS)]
    path = "effects claimed, started and completed, nothing else"
    return [at_least(path, middle(rates), target=10_000, limit=limit)]


async def wholes(bench: Bench) -> list[Line]:
    """What follows an approval: effect, run, draft, record, card asked for."""
    rates = [await _drained(bench, rows.APPROVED, APPROVALS) for _ in range(ROUNDS)]
    return [at_least("the whole after an approval", middle(rates), target=2_000)]


async def _drained(bench: Bench, filling: rows.Filling, many: int) -> float:
    """Empty an outbox; give the rate."""
    with bench.ground() as ground:
        rows.fill(ground.dsn, bench.kind, filling, many, base=ground.base)
        result = await run("tests.bench.drain", {"dsn": ground.dsn})
        if rows.value(ground.dsn, "SELECT count(*) FROM effect_outbox WHERE state <> 'completed'"):
            raise Unfair("not every effect was completed")
    return many / float(result["seconds"])


def _questions(bench: Bench, ground: Ground, many: int) -> Path:
    rows.fill(ground.dsn, bench.kind, rows.QUESTIONS, many, base=ground.base)
    return pack(bench.folder / "clicks", clicks(rows.tokens(ground.dsn, many, base=ground.base)))


def _check_decided(ground: Ground, many: int) -> None:
    open_ones = rows.value(ground.dsn, "SELECT count(*) FROM drafts WHERE status = 'pending'")
    if open_ones:
        raise Unfair(f"{open_ones} of {many} clicks decided nothing")


def _rate(answers: dict[str, Any], status: str) -> float:
    if set(answers["statuses"]) != {status}:
        raise Unfair(f"{status} was expected, and came: {answers['statuses']}")
    return float(answers["rate"])
