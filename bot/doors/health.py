"""GET /healthz, /readyz, /metrics and /openapi.json: what those who run the bot ask it.

Not here: events and runs (intake, runs), or a week's figures (store/metrics).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.contracts.problem import ProblemType, make_problem
from bot.doors.answers import (
    Contained,
    Refused,
    new_request_id,
    refuse_method,
    retry_after,
    send_bytes,
    send_json,
    send_refusal,
)
from bot.flow.tally import Counts, Tally
from bot.policy.limits import UNAVAILABLE_RETRY_AFTER_SECONDS
from store.database import Database
from store.errors import DatabaseAway
from store.reading import EventCount, OpenWork, count_events, count_open_work, newest_migration

_AWAY: Final = "The database cannot be reached just now: ask again in a moment."


@dataclass(frozen=True, slots=True)
class HealthDeps:
    """What is asked: `slack_known`, `scheduler_beating` and `slack_reachable` answer from memory.

    `schema_number` is ours; `slack_reachable` is about the line of Socket Mode, where there is one.
    `more_figures` are read at each scrape beside our own; `document` is what /openapi.json says.
    """

    db: Database
    tally: Tally
    schema_number: int
    slack_known: Callable[[], bool]
    scheduler_beating: Callable[[], bool]
    document: dict[str, Any]
    slack_reachable: Callable[[], bool] = lambda: True
    more_figures: tuple[Callable[[], Awaitable[Iterable[Metric]]], ...] = ()


Handler = Callable[[Scope, Send, str], Awaitable[None]]


class _Door:
    """One address that is only read."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_request_id()
        try:
            if scope["method"] not in {"GET", "HEAD"}:
                raise refuse_method("GET, HEAD")
            await self._handler(scope, send, request_id)
        except Refused as refused:
            await send_refusal(scope, send, refused, request_id=request_id)


class Health:
    """The four addresses over one set of dependencies."""

    def __init__(self, deps: HealthDeps) -> None:
        self._deps = deps

    async def alive(self, scope: Scope, send: Send, request_id: str) -> None:
        """Say that this process answers; nothing else is looked at."""
        await send_json(scope, send, status=200, body={"status": "alive"}, request_id=request_id)

    async def ready(self, scope: Scope, send: Send, request_id: str) -> None:
        """Say whether events and clicks can be served, and what is not there if not."""
        faults = await self._faults()
        if faults:
            problem = make_problem(ProblemType.UNAVAILABLE, " ".join(faults.values()))
            raise Refused(problem, retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS))
        await send_json(scope, send, status=200, body={"status": "ready"}, request_id=request_id)

    async def metrics(self, scope: Scope, send: Send, request_id: str) -> None:
        """Give the figures in Prometheus' text format; the cost does not grow with what is finished."""
        try:
            async with self._deps.db.connection() as conn:
                counts, work = await count_events(conn), await count_open_work(conn)
            more = [figure for read in self._deps.more_figures for figure in await read()]
        except DatabaseAway:
            problem = make_problem(ProblemType.UNAVAILABLE, _AWAY)
            raise Refused(problem, retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)) from None
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        events = events_figure(counts, self._deps.tally.unflushed())
        registry.register(_Read([events, *work_figures(work), *more]))
        headers = ((b"content-type", CONTENT_TYPE_LATEST.encode()), (b"x-request-id", request_id.encode()))
        await send_bytes(scope, send, status=200, body=generate_latest(registry), headers=headers)

    async def openapi(self, scope: Scope, send: Send, request_id: str) -> None:
        """Give the description of every address."""
        await send_json(scope, send, status=200, body=self._deps.document, request_id=request_id)

    async def _faults(self) -> dict[str, str]:
        faults = {}
        try:
            async with self._deps.db.connection() as conn:
                number = await newest_migration(conn)
            if number != self._deps.schema_number:
                faults["schema"] = (
                    f"The schema is at {number}, this version needs {self._deps.schema_number}: run migrate."
                )
        except DatabaseAway:
            faults["database"] = "The database does not answer: check DATABASE_URL and the server."
        if not self._deps.slack_known():
            faults["slack"] = "Slack has not told who we are yet: check SLACK_BOT_TOKEN and the network."
        if not self._deps.slack_reachable():
            faults["socket"] = (
                "No socket to Slack is open: check SLACK_APP_TOKEN, the network, and that Socket Mode is on."
            )
        if not self._deps.scheduler_beating():
            faults["scheduler"] = "The scheduler does not beat: restart this process."
        return faults


class _Read(Collector):
    """Figures that were read already."""

    def __init__(self, figures: Iterable[Metric]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        yield from self._figures


def events_figure(stored: Iterable[EventCount], unflushed: Counts) -> Metric:
    """Add up what the database has and what this process has not flushed yet."""
    totals: Counter[tuple[str, str, str]] = Counter(unflushed)
    for one in stored:
        totals[one.source, one.kind, one.status] += one.n
    figure = CounterMetricFamily(
        "stet_events", "Answers of POST /events.", labels=("status", "kind", "source")
    )
    for (source, kind, status), n in sorted(totals.items()):
        figure.add_metric((status, kind, source), n)
    return figure


def work_figures(work: Iterable[OpenWork]) -> tuple[Metric, ...]:
    """Show what is open, by state and kind."""
    effects = GaugeMetricFamily("stet_effects", "Unfinished effects.", labels=("state", "kind"))
    runs = GaugeMetricFamily("stet_runs", "Runs that are not drafted yet.", labels=("state", "kind"))
    drafts = GaugeMetricFamily("stet_drafts_waiting", "Drafts that wait for a person.", labels=("kind",))
    oldest = GaugeMetricFamily(
        "stet_oldest_draft_seconds", "How long the oldest draft has waited for a person.", labels=("kind",)
    )
    for one in work:
        if one.thing == "draft":
            drafts.add_metric((one.kind,), one.n)
            oldest.add_metric((one.kind,), one.oldest_seconds or 0.0)
        else:
            (effects if one.thing == "effect" else runs).add_metric((one.state, one.kind), one.n)
    return effects, runs, drafts, oldest


def routes(deps: HealthDeps) -> list[Route]:
    """Mount the four addresses."""
    health = Health(deps)
    handlers = {
        "/healthz": health.alive,
        "/readyz": health.ready,
        "/metrics": health.metrics,
        "/openapi.json": health.openapi,
    }
    return [Route(path, Contained(_Door(handler))) for path, handler in handlers.items()]
