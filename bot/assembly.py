"""The parts of one process, built from the settings and joined; nothing runs yet.

Not here: starting and stopping them (wiring), or any behaviour.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from pydantic import SecretStr
from starlette.routing import Router

from bot import RELEASE
from bot.connectors.connector import Kit
from bot.connectors.probe import Prober, build_prober
from bot.connectors.reach import Reach
from bot.doors import health, intake, limited, openapi, runs, slack_app
from bot.doors.answers import NotFound
from bot.doors.senders import Senders
from bot.doors.timer import Step, Timer
from bot.doors.wake import Wakes, hear_with
from bot.drafting.model import NO_KEY, Endpoint, ModelClient
from bot.flow import (
    alert,
    announce,
    expire,
    news,
    places,
    reconcile,
    recover,
    remind,
    rising,
    stop,
    sweep,
    tally,
    withdraw,
)
from bot.flow.dispatch import Dispatcher, Outlet
from bot.flow.draft import Drafter, Drafting
from bot.flow.naming import Names
from bot.flow.receive import Receiver
from bot.flow.redrafter import Redrafter, Redrafting
from bot.flow.show import Shower, Showing
from bot.policy.kinds import Policy
from bot.policy.signatures import read_secret
from bot.registry import Registry, build_registry
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.identity import Identity
from bot.slack.pace import Pace
from bot.slack.people import People
from bot.variables import Variables
from store import migrate
from store.alerts import raise_alert
from store.database import Database
from store.wire import Wire

POLL_SECONDS: Final = 10.0  # The net under a lost wake; idle, that is a handful of cheap questions.
RETRY_SECONDS: Final = 5.0  # The same where a next try may be due within seconds: what is sent and shown.
REST_SECONDS: Final = 0.05  # What people see may wait so long, that what one click sets off is drawn once.
SWEEP_SECONDS: Final = 20.0  # What the clock changes reaches state and card within a minute (SPEC section 9).
FLUSH_SECONDS: Final = 1.0  # Counters are at most this old (SPEC section 6).
IDENTITY_SECONDS: Final = 15.0  # Slack being away at the start is seldom, and short.
_AFTER_DRAFT: Final = ("draft", "places", "show", "resume", "alert", "dispatch")
_AFTER_EXPIRY: Final = ("places", "show", "draft", "resume")
_AFTER_REDRAFT: Final = ("show", "alert")
_AFTER_EFFECT: Final = ("show", "draft", "resume", "alert")
_AFTER_LEASE: Final = (*_AFTER_EFFECT, "dispatch")  # Whoever sends claims what follows by himself.


@dataclass(frozen=True, slots=True)
class Outside:
    """The clients of what is not ours, and what is built from them."""

    slack: SlackClient
    pace: Pace
    people: People
    identity: Identity
    model: ModelClient
    reach: Reach
    registry: Registry
    prober: Prober


@dataclass(frozen=True, slots=True)
class Parts:
    """What works in one process."""

    db: Database
    outside: Outside
    counts: tally.Tally
    receiver: Receiver
    drafter: Drafter
    redrafter: Redrafter
    dispatcher: Dispatcher
    doors: slack_app.SlackDoors


@dataclass(frozen=True, slots=True)
class Process:
    """What wiring starts, serves and stops: the parts, what HTTP reaches, and what wakes the steps."""

    parts: Parts
    app: Router
    timer: Timer
    wire: Wire


def build_outside(settings: Settings, variables: Variables) -> Outside:
    """Build the clients. Raises ReachError and RegistryError."""
    slack = SlackClient(_text(settings.slack_bot_token), base_url=settings.slack_api_url)
    reach = Reach.parse(settings.effect_allowed_hosts)
    signing = settings.effect_signing_secret
    kit = Kit(
        reach=reach,
        signing_secret=read_secret(signing.get_secret_value()) if signing else None,
        slack=slack,
        mail_server=settings.smtp_url,
        mail_from=settings.mail_from,
        variables=variables,
    )
    base = {"base_url": settings.openai_base_url} if settings.openai_base_url else {}
    endpoint = Endpoint(_text(settings.openai_api_key) or NO_KEY, settings.openai_model or NO_KEY, **base)
    return Outside(
        slack=slack,
        pace=Pace(),
        people=People(slack),
        identity=Identity(slack),
        model=ModelClient(endpoint),
        reach=reach,
        registry=build_registry(kit),
        prober=build_prober(kit),
    )


class _Bell:
    """Rings for steps before there are any: they wake each other, and the timer is made from them."""

    wakes: Wakes | None = None

    def ring(self, *names: str) -> None:
        """Wake these steps, here and in other processes."""
        if self.wakes is not None:
            self.wakes.now(*names)

    def ring_in(self, seconds: float, *names: str) -> None:
        """Wake these steps here so much later; the net catches what a stop in between drops."""
        asyncio.get_running_loop().call_later(seconds, self.ring_here, *names)

    def ring_here(self, *names: str) -> None:
        """Wake these steps in this process alone."""
        if self.wakes is not None:
            self.wakes.here(*names)


def build_process(
    settings: Settings, policy: Policy, variables: Variables, *, dsn: str, owner: str
) -> Process:
    """Join everything for one process on one database; `owner` is its name in every lease.

    Raises:
        ReachError, RegistryError: a setting or a connector does not fit.

    """
    bell = _Bell()
    outside = build_outside(settings, variables)
    db = Database(dsn)
    counts = tally.Tally(db, due=partial(bell.ring_here, "count"))
    parts = Parts(
        db=db,
        outside=outside,
        counts=counts,
        receiver=Receiver(db, counts, wake=bell.ring, release=RELEASE),
        drafter=Drafter(
            Drafting(
                db,
                owner,
                policy,
                outside.model,
                outside.registry.gates,
                finished=partial(bell.ring, *_AFTER_DRAFT),
            )
        ),
        redrafter=Redrafter(
            Redrafting(db, owner, policy, outside.model, finished=partial(bell.ring, *_AFTER_REDRAFT))
        ),
        dispatcher=Dispatcher(
            Outlet(
                db,
                owner,
                outside.registry.connectors,
                actions_enabled=settings.ai_actions_enabled,
                ops_channel=settings.ops_channel,
                settled=partial(bell.ring, *_AFTER_EFFECT),
                prober=outside.prober,
                policy=policy,
            )
        ),
        doors=slack_app.build_slack_doors(
            slack_app.SlackDeps(
                db=db,
                slack=outside.slack,
                people=outside.people,
                policy=policy,
                identity=outside.identity,
                settings=settings,
                effect_types=tuple(outside.registry.connectors),
                wake=bell.ring,
                pace=outside.pace,
            )
        ),
    )
    timer = Timer(_steps(settings, policy, parts, owner, bell), failed=partial(_report, db))
    wire = Wire(dsn, owner, hear_with(timer))
    bell.wakes = Wakes(timer, wire)
    return Process(parts, _router(settings, policy, parts, timer), timer, wire)


def _steps(settings: Settings, policy: Policy, parts: Parts, owner: str, bell: _Bell) -> list[Step]:
    db, outside, ops = parts.db, parts.outside, settings.ops_channel
    shower = Shower(
        Showing(
            db=db,
            owner=owner,
            slack=outside.slack,
            pace=outside.pace,
            names=Names(outside.slack, outside.pace),
            actions_enabled=settings.ai_actions_enabled,
            language=settings.language,
            due_in=lambda seconds: bell.ring_in(seconds, "show"),
        )
    )
    telling = alert.Alerting(db, outside.slack, outside.pace, ops, settings.language, settings.admin_users)
    reminding = remind.Reminding(db, outside.slack, outside.pace, policy, settings.language)
    asking = reconcile.Reconciling(db, outside.registry.connectors, ops)
    outcomes = announce.Announcing(db, due_in=lambda seconds: bell.ring_in(seconds, "dispatch"))
    return [
        Step("identity", outside.identity.run_once, IDENTITY_SECONDS),
        Step("draft", parts.drafter.run_once, POLL_SECONDS),
        Step("redraft", parts.redrafter.run_once, RETRY_SECONDS),
        Step(
            "places",
            partial(places.run_once, places.Placing(db, policy)),
            POLL_SECONDS,
            ("show",),
            REST_SECONDS,
        ),
        Step("show", shower.run_once, RETRY_SECONDS, rest_seconds=REST_SECONDS),
        Step("dispatch", parts.dispatcher.run_once, RETRY_SECONDS),
        Step("recover", partial(recover.run_once, recover.Recovering(db, ops)), POLL_SECONDS, _AFTER_LEASE),
        Step("reconcile", partial(reconcile.run_once, asking), POLL_SECONDS, _AFTER_LEASE),
        Step("tell", partial(news.run_once, db), RETRY_SECONDS, ("show", "alert")),
        Step("rising", partial(rising.run_once, rising.Rising(db)), SWEEP_SECONDS, ("alert",)),
        Step("withdraw", partial(withdraw.run_once, withdraw.Withdrawing(db)), SWEEP_SECONDS, ("show",)),
        Step("expire", partial(expire.run_once, expire.Expiring(db)), SWEEP_SECONDS, _AFTER_EXPIRY),
        Step("switched", partial(stop.show_switched, db), SWEEP_SECONDS, ("show",)),
        Step("sweep", partial(sweep.run_once, sweep.Sweeping(db)), SWEEP_SECONDS),
        Step("home", parts.doors.homes.run_once, RETRY_SECONDS),
        Step("remind", partial(remind.run_once, reminding), SWEEP_SECONDS),
        Step("resume", partial(announce.run_once, outcomes), POLL_SECONDS, ("dispatch",), REST_SECONDS),
        Step("alert", partial(alert.run_once, telling), RETRY_SECONDS),
        Step("count", partial(tally.run_once, parts.counts), RETRY_SECONDS, rest_seconds=FLUSH_SECONDS),
    ]


def _router(settings: Settings, policy: Policy, parts: Parts, timer: Timer) -> Router:
    """Every address of this process; nothing is redirected, a slash too many is no address."""
    senders = Senders(settings.intake_tokens, settings.intake_signing_secrets)
    url = settings.public_url.rstrip("/")
    watched = health.HealthDeps(
        db=parts.db,
        tally=parts.counts,
        schema_number=len(migrate.migrations()),
        slack_known=parts.outside.identity.known,
        scheduler_beating=lambda: not timer.late(),
        slack_reachable=parts.doors.reachable,
        more_figures=(partial(limited.figures, parts.db),),
        document=openapi.describe(public_url=url, release=RELEASE),
    )
    routes = [
        *intake.routes(intake.IntakeDeps(parts.receiver, senders, policy, parts.outside.reach, url)),
        *runs.routes(runs.RunsDeps(parts.db, senders, url)),
        *health.routes(watched),
        *parts.doors.routes,
    ]
    return Router(routes, redirect_slashes=False, default=NotFound())


async def _report(db: Database, step: str, fault: str) -> None:
    """Tell ops that a step fails, once a day and step and class of fault."""
    async with db.connection() as conn:
        key = f"step_failed:{step}:{fault}:{datetime.now(UTC):%Y-%m-%d}"
        await raise_alert(conn, key=key, name="step_failed", facts={"step": step, "reason": fault})


def _text(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
