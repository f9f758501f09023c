"""Redrafting: a wish is kept, fulfilled once, and over within ten minutes, whatever happens meanwhile.

Not here: the window that asks (tests/doors/test_redraft) or how the model is asked (tests/drafting).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, LiteralString

import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface
from bot.demo.model import ModelServer
from bot.demo.model_script import HANG, HOLD, Script, Step, fail, say
from bot.drafting.model import Endpoint, ModelClient, Pace
from bot.flow import expire
from bot.flow import wishes as working
from bot.flow.decide import Decided, decide
from bot.flow.redraft import Wished, ask
from bot.flow.redrafter import Redrafter, Redrafting
from bot.policy.kinds import Policy
from store import audit
from store import redrafts as store
from store.database import Database
from store.errors import DatabaseAway, LostRace
from store.queries import Connection
from store.redrafts import Grip
from store.rows import Claim
from tests.flow.test_decide import HOME, click, deciding
from tests.makers import change, make_draft, make_run, make_token, rows

D1 = {"subject": "About your parcel", "body": "Shorter.", "label": "refund"}
OUTPUT = {
    "type": "object",
    "required": ["subject", "body"],
    "properties": {name: {"type": "string"} for name in ("subject", "body", "label")},
}
FROZEN = {"output": OUTPUT}

Make = Callable[..., Redrafter]


@pytest.fixture
async def redrafter_on(model_server: ModelServer, script: Script, policy: Policy) -> AsyncIterator[Make]:
    """Make redrafters on a database; each counts as a process of its own."""

    async def no_wait(_seconds: float) -> None:
        """Between two tries nothing is waited here."""

    endpoint = Endpoint(api_key="sk-test", base_url=model_server.base_url, model="pretend")
    async with ModelClient(endpoint, pace=Pace(sleep=no_wait)) as model:

        def make(db: Database, owner: str = "one") -> Redrafter:
            return Redrafter(Redrafting(db, owner, policy, model))

        yield make


async def work(redrafter: Redrafter) -> int:
    """One step, until nothing is being redrafted any more."""
    found = await redrafter.run_once()
    await redrafter.drain()
    return found


def wishing(dsn: str, draft: dict[str, Any], user: str = "U0ALICE", wish: str = "Shorter, please") -> Click:
    """One person's wish from a window of their own."""
    token = make_token(dsn, draft, "redraft", surface="view", card_id=None, holder=f"slack:{HOME}:{user}")
    facts: dict[str, Any] = {"surface": Surface.VIEW, "channel": None, "ts": None, "reason": wish}
    return click(draft, token, user, decision=Decision.REDRAFT, **facts)


def make_wish(dsn: str, draft: dict[str, Any], *, age_seconds: float = 0, **more: Any) -> None:
    """A wish as it stands after a while."""
    change(
        dsn,
        "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by, wish, opened_at)"
        " VALUES (gen_random_uuid(), %(draft_id)s, 1, 'slack:T0HOME:U0BOB', 'Shorter',"
        " now() - %(age)s * interval '1 second')",
        draft_id=draft["draft_id"],
        age=age_seconds,
    )
    if "owner" in more:
        change(
            dsn,
            "UPDATE redrafts SET lease_owner = %(owner)s, attempts = %(attempts)s,"
            " lease_expires_at = now() - interval '1 second', result = %(result)s",
            **({"attempts": 1, "result": None} | more),
        )


def wishes(dsn: str) -> list[dict[str, Any]]:
    return rows(dsn, "SELECT * FROM redrafts ORDER BY opened_at, redraft_id")


def outcomes(dsn: str) -> list[str | None]:
    return [wish["outcome"] for wish in wishes(dsn)]


def asking(db: Database, policy: Policy) -> Any:
    deps = deciding(db)
    return replace(deps, policy=policy)


# A wish becomes the next revision: new question, no votes, same term; the record has no word of the wish.
async def test_redraft(dsn: str, db: Database, policy: Policy, redrafter_on: Make, script: Script) -> None:
    draft = make_draft(dsn, snapshot=FROZEN | {"quorum": 2})
    await decide(deciding(db), click(draft, make_token(dsn, draft), "U0BOB"))
    term = rows(dsn, "SELECT expires_at FROM drafts")
    assert await ask(asking(db, policy), wishing(dsn, draft, wish="Make it <short> & kind")) == Wished()
    script.then(say(json.dumps(D1)))
    assert await work(redrafter_on(db)) == 1
    (made,) = rows(dsn, "SELECT * FROM revisions WHERE revision = 2")
    assert (made["body"], made["author"]) == (D1, "model")
    assert made["warnings"] == ["The customer asks for money back."]
    assert made["model"]
    assert outcomes(dsn) == ["done"]
    assert wishes(dsn)[0]["result"] is None
    questions = rows(dsn, "SELECT revision, end_reason, quorum FROM approvals ORDER BY revision")
    assert questions == [
        {"revision": 1, "end_reason": "redrafted", "quorum": 2},
        {"revision": 2, "end_reason": None, "quorum": 2},
    ]
    assert rows(
        dsn, "SELECT count(*) AS n FROM votes JOIN approvals USING (approval_id) WHERE revision = 2"
    ) == [{"n": 0}]
    assert rows(dsn, "SELECT expires_at FROM drafts") == term
    assert rows(dsn, "SELECT state FROM workflow_runs") == [{"state": "awaiting_human"}]
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [line.action for line in chain] == ["voted", "redraft_asked", "redrafted"]
    assert not audit.faults_of(chain)
    assert "kind" not in "".join(line.detail or "" for line in chain)
    said = json.dumps(script.journal[0].body["messages"])
    assert "It ships Monday." in said
    assert "Make it" in said


# While the wish is open nobody decides or wishes again: a new draft is being made.
async def test_old_buttons_are_refused(dsn: str, db: Database, policy: Policy) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    second = wishing(dsn, draft, "U0BOB")
    first = wishing(dsn, draft)
    assert await ask(asking(db, policy), first) == Wished()
    assert await decide(deciding(db), click(draft, make_token(dsn, draft))) == NotDecided(Why.REDRAFTING)
    assert await ask(asking(db, policy), second) == NotDecided(Why.REDRAFTING)
    assert await ask(asking(db, policy), first) == NotDecided(Why.REDRAFTING)
    assert outcomes(dsn) == [None]


# Two people wish at once: one wish is kept, the other person hears that a new draft is being made.
@pytest.mark.parametrize("round_", range(10))
async def test_two_wishes(dsn: str, db: Database, policy: Policy, round_: int) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    deps = asking(db, policy)
    answers = await asyncio.gather(*(ask(deps, wishing(dsn, draft, user)) for user in ("U0ALICE", "U0BOB")))
    assert sorted(map(type, answers), key=str) == sorted([Wished, NotDecided], key=str)
    assert NotDecided(Why.REDRAFTING) in answers
    assert outcomes(dsn) == [None]


# A wish against an approval at the same instant: either the approved text leaves, or it is redrafted.
@pytest.mark.parametrize("round_", range(20))
async def test_wish_against_approve(dsn: str, db: Database, policy: Policy, round_: int) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    both = [
        ask(asking(db, policy), wishing(dsn, draft)),
        decide(deciding(db), click(draft, make_token(dsn, draft), "U0BOB")),
    ]
    answers = await asyncio.gather(*(both if round_ % 2 else reversed(both)))
    wished = any(isinstance(answer, Wished) for answer in answers)
    assert wished != any(isinstance(answer, Decided) for answer in answers)
    (lost,) = [answer for answer in answers if isinstance(answer, NotDecided)]
    assert lost.why == (Why.REDRAFTING if wished else Why.APPROVED)
    assert outcomes(dsn) == ([None] if wished else [])
    assert rows(dsn, "SELECT count(*) AS n FROM effect_outbox") == [{"n": 0 if wished else 1}]


# The kind bounds the wishes about one event; what the model could not be asked for does not count.
async def test_bounded(dsn: str, db: Database, policy: Policy) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    deps = asking(db, policy)
    for outcome in ("done", "failed", "unavailable", "timed_out", "overtaken"):
        make_wish(dsn, draft, age_seconds=100)
        change(
            dsn,
            "UPDATE redrafts SET closed_at = now(), outcome = %(outcome)s WHERE closed_at IS NULL",
            outcome=outcome,
        )
    assert await ask(deps, wishing(dsn, draft)) == NotDecided(Why.REDRAFTS_USED_UP)
    change(dsn, "UPDATE redrafts SET outcome = 'timed_out' WHERE outcome = 'failed'")
    assert await ask(deps, wishing(dsn, draft)) == Wished()


# A kind whose events bring their drafts has no model to ask.
async def test_kind_without_prompt(dsn: str, db: Database, policy: Policy) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    silent = policy.kinds["customer_email"].model_copy(update={"prompt": None})
    deps = replace(asking(db, policy), policy=Policy(kinds={"customer_email": silent}))
    assert await ask(deps, wishing(dsn, draft)) == NotDecided(Why.REDRAFTS_USED_UP)


DOWN: dict[str, tuple[Step, str]] = {
    "away": (fail(503), "unavailable"),
    "refused by status": (fail(401), "unavailable"),
    "no JSON": (say("I would rather not."), "failed"),
    "another shape": (say('{"subject": 7}'), "failed"),
}


# Whatever keeps the model from answering closes the wish: the card opens again with the same question.
@pytest.mark.parametrize("case", DOWN)
async def test_model_down(dsn: str, db: Database, redrafter_on: Make, script: Script, case: str) -> None:
    step, outcome = DOWN[case]
    draft = make_draft(dsn, snapshot=FROZEN)
    token = make_token(dsn, draft)
    make_wish(dsn, draft)
    script.always(step)
    await work(redrafter_on(db))
    assert outcomes(dsn) == [outcome]
    assert rows(dsn, "SELECT wanted_version FROM cards") == [{"wanted_version": 2}]
    assert rows(dsn, "SELECT count(*) AS n FROM revisions") == [{"n": 1}]
    assert isinstance(await decide(deciding(db), click(draft, token)), Decided)
    actions = [row["action"] for row in rows(dsn, "SELECT action FROM audit_log ORDER BY seq")]
    assert actions == ["redraft_closed", "approved"]


# A model that asks for patience is asked again when it said, if there is time; else the wish is closed.
@pytest.mark.parametrize(("seconds", "left"), [("7", None), ("3600", "unavailable")])
async def test_throttled(
    dsn: str, db: Database, redrafter_on: Make, script: Script, *, seconds: str, left: str | None
) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    script.then(replace(fail(429), headers={"Retry-After": seconds}))
    await work(redrafter_on(db))
    (wish,) = wishes(dsn)
    assert wish["outcome"] == left
    assert wish["lease_owner"] is None
    if left is None:
        assert await work(redrafter_on(db)) == 0
        change(dsn, "UPDATE redrafts SET next_attempt_at = now()")
        script.then(say(json.dumps(D1)))
        await work(redrafter_on(db))
        assert outcomes(dsn) == ["done"]


# An owner that lost its lease writes nothing; whoever took over fulfils the wish once.
async def test_lost_lease(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    script.then(replace(say(json.dumps(D1 | {"body": "Slow."})), how=HANG))
    slow = redrafter_on(db, "slow")
    await slow.run_once()
    await script.arrived(1)
    change(dsn, "UPDATE redrafts SET lease_expires_at = now(), next_attempt_at = now()")
    script.then(say(json.dumps(D1)))
    await work(redrafter_on(db, "quick"))
    await slow.stop()
    assert outcomes(dsn) == ["done"]
    assert [row["body"]["body"] for row in rows(dsn, "SELECT body FROM revisions ORDER BY revision")] == [
        "It ships Monday.",
        "Shorter.",
    ]


# The answer of a slow owner comes too late to be kept, whoever holds the wish by then.
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE redrafts SET lease_owner = 'other'",
        "UPDATE redrafts SET attempts = attempts + 1",
        "UPDATE redrafts SET lease_expires_at = now() - interval '1 second'",
        (
            "UPDATE redrafts SET closed_at = now(), outcome = 'timed_out', lease_owner = NULL,"
            " lease_expires_at = NULL"
        ),
    ],
)
async def test_late_answer(
    dsn: str, db: Database, redrafter_on: Make, script: Script, statement: Any
) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    script.then(replace(say(json.dumps(D1)), how=HOLD))
    redrafter = redrafter_on(db)
    await redrafter.run_once()
    await script.arrived(1)
    change(dsn, statement)
    script.release()
    await redrafter.drain()
    assert rows(dsn, "SELECT count(*) AS n FROM revisions") == [{"n": 1}]
    assert outcomes(dsn) in ([None], ["timed_out"])


STALE: dict[str, LiteralString] = {
    "another owner": "UPDATE redrafts SET lease_owner = 'other'",
    "another claim of the same owner": "UPDATE redrafts SET attempts = attempts + 1",
    "a lease that ran out": "UPDATE redrafts SET lease_expires_at = now() - interval '1 second'",
}
WRITES: dict[str, Callable[[Connection, Grip], Awaitable[object]]] = {
    "renew": lambda conn, grip: store.renew_redraft(conn, grip, lease_seconds=60, longest_seconds=600),
    "keep": lambda conn, grip: store.keep_redraft_answer(conn, grip, {}),
    "postpone": lambda conn, grip: store.postpone_redraft(conn, grip, wait_seconds=1, longest_seconds=600),
    "use": store.use_redraft,
    "close": lambda conn, grip: store.close_redraft(conn, grip, "failed"),
}


# A wish for a kind that our policy lacks is left to a process that has it; after a while nobody has.
async def test_kind_of_another_policy(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN, run={"kind": "new_kind"}))
    assert await work(redrafter_on(db)) == 0
    change(dsn, "UPDATE redrafts SET next_attempt_at = now() - interval '301 seconds'")
    assert await work(redrafter_on(db)) == 1
    assert outcomes(dsn) == ["unavailable"]
    assert not script.journal


# Every write of a worker is under its own claim: a stale one writes nothing, a good one does.
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("case", [None, *STALE])
async def test_every_write_is_under_the_claim(dsn: str, db: Database, write: str, case: str | None) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    async with db.connection() as conn:
        (claimed,) = await store.claim_redrafts(conn, Claim("one", 9, 60, (), 0), longest_seconds=600)
    grip = Grip(claimed.redraft_id, "one", claimed.attempts)
    if case is None:
        async with db.transaction() as conn:
            await WRITES[write](conn, grip)
        return
    change(dsn, STALE[case])
    before = wishes(dsn)
    with pytest.raises(LostRace):
        async with db.transaction() as conn:
            await WRITES[write](conn, grip)
    assert wishes(dsn) == before


# A wish whose owner died with the answer kept is fulfilled without asking the model again.
async def test_stored_answer(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    kept = json.dumps({"output": D1, "model": "m", "fingerprint": None, "prompt_version": "p"})
    make_wish(dsn, draft, owner="dead", result=kept)
    await work(redrafter_on(db))
    assert not script.journal
    assert outcomes(dsn) == ["done"]
    assert rows(dsn, "SELECT model, prompt_version FROM revisions WHERE revision = 2") == [
        {"model": "m", "prompt_version": "p"}
    ]


# A wish that kills its workers is given up.
async def test_takeovers_are_bounded(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN), owner="dead", attempts=5)
    await work(redrafter_on(db))
    assert not script.journal
    assert outcomes(dsn) == ["unavailable"]


# A result whose revision is not the open one any more is dropped.
async def test_overtaken_result(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    script.then(replace(say(json.dumps(D1)), how=HANG))
    redrafter = redrafter_on(db)
    await redrafter.run_once()
    await script.arrived(1)
    await redrafter.stop()
    change(
        dsn,
        "UPDATE redrafts SET result = %(result)s, next_attempt_at = now()",
        result=json.dumps({"output": D1, "model": "m", "fingerprint": None, "prompt_version": "p"}),
    )
    change(dsn, "UPDATE drafts SET revision = 2")
    await work(redrafter_on(db))
    assert outcomes(dsn) == ["overtaken"]
    assert rows(dsn, "SELECT count(*) AS n FROM revisions") == [{"n": 1}]


# After ten minutes the wish is over, also while somebody works at it, and the card opens again.
@pytest.mark.parametrize("held", [True, False])
async def test_ten_minutes(dsn: str, db: Database, redrafter_on: Make, script: Script, *, held: bool) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    make_wish(dsn, draft, age_seconds=601)
    if held:
        change(
            dsn,
            "UPDATE redrafts SET lease_owner = 'slow', attempts = 1,"
            " lease_expires_at = now() + interval '50 seconds',"
            " next_attempt_at = now() + interval '50 seconds'",
        )
    assert await work(redrafter_on(db)) == 1
    assert not script.journal
    assert outcomes(dsn) == ["timed_out"]
    assert rows(dsn, "SELECT wanted_version FROM cards") == [{"wanted_version": 2}]
    assert isinstance(await decide(deciding(db), click(draft, make_token(dsn, draft))), Decided)


# The expiry of its draft ends the wish, and so does a newer event; the worker then changes nothing.
@pytest.mark.parametrize(("end", "outcome"), [("expiry", "expired"), ("event", "newer_event")])
async def test_closed_by_others(
    dsn: str, db: Database, redrafter_on: Make, script: Script, *, end: str, outcome: str
) -> None:
    draft = make_draft(dsn, snapshot=FROZEN)
    make_wish(dsn, draft)
    script.then(replace(say(json.dumps(D1)), how=HANG))
    redrafter = redrafter_on(db)
    await redrafter.run_once()
    await script.arrived(1)
    change(dsn, "UPDATE redrafts SET result = '{}'")
    if end == "expiry":
        change(dsn, "UPDATE drafts SET expires_at = now()")
        await expire.run_once(expire.Expiring(db))
    else:
        make_run(dsn, version=18)
        change(
            dsn,
            "UPDATE redrafts SET closed_at = now(), outcome = 'newer_event', result = NULL,"
            " lease_owner = NULL, lease_expires_at = NULL",
        )
    await redrafter.stop()
    assert outcomes(dsn) == [outcome]
    assert wishes(dsn)[0]["result"] is None
    assert rows(dsn, "SELECT count(*) AS n FROM revisions") == [{"n": 1}]


# While the switch holds the model back nobody asks it; the ten minutes run all the same.
async def test_llm_switch(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    change(dsn, "INSERT INTO kill_switch (scope, open, changed_by) VALUES ('llm', false, 'x')")
    assert await work(redrafter_on(db)) == 0
    change(dsn, "UPDATE redrafts SET opened_at = opened_at - interval '601 seconds'")
    assert await work(redrafter_on(db)) == 1
    assert outcomes(dsn) == ["timed_out"]


# A process that stops gives its wishes back, due now; another fulfils them.
async def test_stop_gives_back(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    make_wish(dsn, make_draft(dsn, snapshot=FROZEN))
    script.then(Step(how=HANG))
    redrafter = redrafter_on(db)
    await redrafter.run_once()
    await script.arrived(1)
    await redrafter.stop()
    assert [wish["lease_owner"] for wish in wishes(dsn)] == [None]
    script.then(say(json.dumps(D1)))
    assert await work(redrafter_on(db, "two")) == 1
    assert outcomes(dsn) == ["done"]


# Many workers on many wishes: each is fulfilled once.
async def test_two_workers(dsn: str, db: Database, redrafter_on: Make, script: Script) -> None:
    script.always(say(json.dumps(D1)))
    for n in range(12):
        make_wish(dsn, make_draft(dsn, snapshot=FROZEN, run={"entity": f"customer:{n}"}))
    one, two = redrafter_on(db, "one"), redrafter_on(db, "two")
    while sum(await asyncio.gather(work(one), work(two))):
        pass
    assert len(script.journal) == 12
    assert outcomes(dsn) == ["done"] * 12


# What the database went away from is taken up again at once after that, and the model is not asked again.
async def test_database_away(
    dsn: str, db: Database, redrafter_on: Make, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise DatabaseAway("gone")

    draft = make_draft(dsn, snapshot=FROZEN)
    make_wish(dsn, draft)
    script.then(say(json.dumps(D1)))
    redrafter = redrafter_on(db)
    with monkeypatch.context() as patched:
        patched.setattr(working, "use_answer", away)
        assert await work(redrafter) == 1
    assert await work(redrafter) == 1
    assert outcomes(dsn) == ["done"]
    assert script.requests == 1
