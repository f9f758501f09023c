"""Waits for rows by being told of changes, makes leases old instead of waiting, checks what must always hold.
Not here: the processes (tests/processes) or single rows (tests/makers).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString

import psycopg
import psycopg.sql
from psycopg.rows import dict_row

from bot.records import verify_record
from tests.processes import PATIENCE_SECONDS, Bot, Stage

WATCHED = (
    "workflow_runs",
    "drafts",
    "cards",
    "effect_outbox",
    "alerts",
    "approvals",
    "redrafts",
    "kill_switch",
    "seen_events",
    "effect_look_ups",
)
# Due times (backoffs, settle windows) have no event that tells of them: they are made due by hand, after each
# change and at the latest so often.
AGAIN_SECONDS = 0.5
_MAKE_DUE: tuple[LiteralString, ...] = (
    """UPDATE workflow_runs SET lease_expires_at = now(), next_attempt_at = now()
        WHERE state = 'processing' AND lease_owner LIKE ANY(%(whose)s)""",
    """UPDATE workflow_runs SET next_attempt_at = now()
        WHERE state = 'failed_retryable' AND next_attempt_at > now()""",
    """UPDATE redrafts SET lease_expires_at = now(), next_attempt_at = now()
        WHERE closed_at IS NULL AND lease_owner LIKE ANY(%(whose)s)""",
    """UPDATE effect_outbox SET lease_expires_at = now()
        WHERE state = 'sending' AND lease_expires_at > now() AND lease_owner LIKE ANY(%(whose)s)""",
    """UPDATE effect_outbox SET next_attempt_at = now()
        WHERE state IN ('pending', 'unknown') AND next_attempt_at > now()""",
    """UPDATE cards SET lease_expires_at = now(), next_attempt_at = now()
        WHERE lease_owner LIKE ANY(%(whose)s)""",
    "UPDATE cards SET next_attempt_at = now() WHERE lease_owner IS NULL AND next_attempt_at > now()",
    # A post whose answer was lost is believed absent only after a while.
    """UPDATE cards SET post_started_at = post_started_at - interval '60 seconds'
        WHERE ts IS NULL AND post_started_at > now() - interval '60 seconds'""",
    "UPDATE alerts SET next_attempt_at = now() WHERE sent_at IS NULL AND next_attempt_at > now()",
)
_TELL = """
CREATE FUNCTION tell_test() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('tell_test', ''); RETURN NULL; END $$
"""
_TRIGGER = psycopg.sql.SQL(
    "CREATE TRIGGER tell_test AFTER INSERT OR UPDATE ON {} EXECUTE FUNCTION tell_test()"
)
_STEPS = "switched,draft,redraft,places,show,dispatch,recover,reconcile,withdraw,expire,resume,alert,count"


class Watch:
    """One database, watched: every change of a row that matters is heard."""

    def __init__(self, dsn: str, conn: psycopg.AsyncConnection[dict[str, Any]]) -> None:
        self.dsn = dsn
        self._conn = conn
        self._changed = asyncio.Event()
        self._hearing = asyncio.create_task(self._hear())
        self._dead: set[int] = set()

    async def rows(self, statement: LiteralString, **params: Any) -> list[dict[str, Any]]:
        """Read rows as the owner."""
        return await (await self._conn.execute(statement, params)).fetchall()

    async def value(self, statement: LiteralString, **params: Any) -> Any:
        """Read one value as the owner."""
        (row,) = await self.rows(statement, **params)
        (found,) = row.values()
        return found

    async def change(self, statement: LiteralString, **params: Any) -> int:
        """Change rows as the owner."""
        return (await self._conn.execute(statement, params)).rowcount

    async def until(self, statement: LiteralString, *, hurry: bool = False, **params: Any) -> None:
        """Wait until a statement gives true; `hurry`: what waits for the clock meanwhile is made due."""
        loop, hurried_at = asyncio.get_running_loop(), float("-inf")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    self._changed.clear()
                    if await self.value(statement, **params):
                        return
                    if hurry and loop.time() - hurried_at >= AGAIN_SECONDS:
                        hurried_at = loop.time()
                        await self.hurry()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), AGAIN_SECONDS)
        except TimeoutError:
            raise AssertionError(f"never: {statement} {params}\n{await self.picture()}") from None

    async def changed(self, *, hurry: bool) -> None:
        """Wait for the next change of a row, or a moment; with `hurry` what waits for the clock is due."""
        if hurry:
            await self.hurry()
        self._changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), AGAIN_SECONDS)

    async def bury(self, *bots: Bot) -> None:
        """Let the leases of processes that are dead run out at once, instead of waiting for it."""
        for bot in bots:
            assert bot.is_over
            self._dead.add(bot.pid)
        await self.hurry()

    async def hurry(self) -> None:
        """Make due whatever waits for the clock, leases of the dead included, and wake every step."""
        whose = [f"%:{pid}:%" for pid in self._dead]
        for statement in _MAKE_DUE:
            await self.change(statement, whose=whose)
        await self.nudge()

    async def nudge(self, steps: str = _STEPS) -> None:
        """Wake steps in every process, as another process would."""
        await self._conn.execute("SELECT pg_notify('stet_wake', %s)", [f"test {steps}"])

    async def picture(self) -> str:
        """What stands in the tables, for a failing test."""
        told = []
        for table in ("workflow_runs", "drafts", "effect_outbox", "cards", "alerts"):
            rows = psycopg.sql.SQL("SELECT to_jsonb(t) AS row FROM {} AS t").format(
                psycopg.sql.Identifier(table)
            )
            told += [table, *(str(row["row"]) for row in await (await self._conn.execute(rows)).fetchall())]
        return "\n".join(told)

    async def close(self) -> None:
        """Hang up."""
        self._hearing.cancel()
        await asyncio.gather(self._hearing, return_exceptions=True)
        await self._conn.close()

    async def _hear(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as conn:
            await conn.execute("LISTEN tell_test")
            async for _ in conn.notifies():
                self._changed.set()


@asynccontextmanager
async def watching(dsn: str, *, told: bool = True) -> AsyncIterator[Watch]:
    """Watch a database of this test alone; not `told`: it was watched before, and its triggers are there."""
    conn = await psycopg.AsyncConnection.connect(dsn, autocommit=True, row_factory=dict_row)
    if told:
        await conn.execute(_TELL)
        for table in WATCHED:
            await conn.execute(_TRIGGER.format(psycopg.sql.Identifier(table)))
    watch = Watch(dsn, conn)
    try:
        yield watch
    finally:
        await watch.close()


_NEVER: dict[str, LiteralString] = {
    "two open drafts of one key": """
        SELECT draft_key FROM drafts WHERE status IN ('pending', 'scheduled', 'approved')
         GROUP BY 1 HAVING count(*) > 1""",
    "a decision taken twice, and not withdrawn in between": """
        SELECT a.draft_id, a.revision FROM approvals AS a WHERE a.decision = 'approve'
         GROUP BY 1, 2 HAVING count(*) > 1 + (SELECT count(*) FROM effect_outbox AS e
                                               WHERE e.draft_id = a.draft_id AND e.state = 'cancelled')""",
    "two effects of one key": """
        SELECT idempotency_key FROM effect_outbox WHERE state <> 'cancelled'
         GROUP BY idempotency_key, effect_type, target HAVING count(*) > 1""",
    "a lease without its state": """
        SELECT effect_id FROM effect_outbox WHERE (state = 'sending') <> (lease_owner IS NOT NULL)""",
    "sent, and the run not completed": """
        SELECT d.draft_id FROM drafts AS d JOIN workflow_runs AS r USING (run_id)
         WHERE (d.status = 'sent') <> (r.state = 'completed')""",
    "completed, and the draft not sent": """
        SELECT e.effect_id FROM effect_outbox AS e JOIN drafts AS d USING (draft_id)
         WHERE e.effect_type <> 'resume' AND e.state = 'completed' AND d.status <> 'sent'""",
    "approved, and no effect": """
        SELECT draft_id FROM drafts AS d WHERE status = 'approved'
           AND NOT EXISTS (SELECT FROM effect_outbox AS e
                            WHERE e.draft_id = d.draft_id AND e.state <> 'cancelled')""",
    "unknown, and no card for ops": """
        SELECT effect_id FROM effect_outbox AS e WHERE state = 'unknown'
           AND NOT EXISTS (SELECT FROM cards AS c WHERE c.effect_id = e.effect_id)""",
    "a draft without a card": """
        SELECT draft_id FROM drafts AS d
         WHERE NOT EXISTS (SELECT FROM cards AS c WHERE c.draft_id = d.draft_id)""",
}
# Rows that tests/makers makes approved have no decision behind them.
_NEVER_WHERE_PEOPLE_DECIDE: dict[str, LiteralString] = {
    "an effect that nobody approved": """
        SELECT effect_id FROM effect_outbox AS e WHERE effect_type <> 'resume'
           AND NOT EXISTS (SELECT FROM approvals AS a
                            WHERE a.draft_id = e.draft_id AND a.decision = 'approve')""",
    "a decision, and not one line for it": """
        SELECT d.draft_id FROM drafts AS d JOIN workflow_runs AS r USING (run_id)
         WHERE (SELECT count(*) FROM approvals AS a
                 WHERE a.draft_id = d.draft_id AND a.run_id = d.run_id AND a.decision = 'approve')
            <> (SELECT count(*) FROM audit_log AS l
                 WHERE l.chain = r.idempotency_key AND l.action = 'approved')""",
}


async def check_promises(stage: Stage, watch: Watch, *, repeated: int = 0, made: bool = False) -> None:
    """Hold both sides to SPEC section 5.

    `repeated`: how many effects a person sent again; `made`: the rows were made, nobody decided them.
    """
    for fault, statement in (_NEVER | ({} if made else _NEVER_WHERE_PEOPLE_DECIDE)).items():
        assert not await watch.rows(statement), f"{fault}\n{await watch.picture()}"
    await _check_far_side(stage, watch, repeated)
    for row in await watch.rows("SELECT idempotency_key AS key FROM workflow_runs"):
        assert len(stage.cards(row["key"])) <= 1, f"two cards: {row}\n{await watch.picture()}"
    marks = [str(each.metadata) for each in stage.ops() if each.metadata]
    assert len(marks) == len(set(marks)), "ops was told twice"
    said: list[str] = []
    assert await verify_record(watch.dsn, said.append) == 0, said


async def _check_far_side(stage: Stage, watch: Watch, repeated: int) -> None:
    sent = stage.sent()
    assert sum(count - 1 for count in sent.values()) <= repeated, f"sent twice: {sent}"
    for row in await watch.rows("SELECT effect_id::text, state FROM effect_outbox"):
        times = sent.pop(row["effect_id"], 0)
        if row["state"] == "completed":
            assert times >= 1, f"completed, and never arrived: {row}"
        if times:
            assert row["state"] in {"completed", "unknown", "sending"}, f"arrived, and not said: {row}"
    assert not sent, f"sent what is on no record: {sent}"
