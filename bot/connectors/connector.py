"""The contract of a connector: what it is given, what it answers, and how it is called safely.

Not here: any particular connector, or what follows from an outcome (bot/flow/dispatch, bot/flow/reconcile).
"""

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from bot.connectors.dial import Resolve, resolve_host
from bot.connectors.reach import Reach
from bot.contracts.outcome import LookUpOutcome, NoAnswer, SendOutcome, Unknown
from bot.environment import MailServer
from bot.policy.kinds import EffectPolicy
from bot.slack.client import SlackClient
from bot.variables import Variables
from store.database import outside_transaction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing to do in the outside world; `body` is the same bytes on every try.

    `created_at` is when the decision made it, by the database's clock.
    """

    effect_id: UUID
    key: str
    kind: str
    entity: str
    revision: int
    effect_type: str
    target: str = field(repr=False)  # an address may hold a secret
    recipient: str | None = field(repr=False)
    body: bytes = field(repr=False)
    policy: EffectPolicy = field(repr=False)
    attempt: int = 1
    created_at: datetime | None = None


def made_at(effect: Effect) -> datetime:
    """When the decision made it; else by its id, a UUID version 7 of some process's clock (RFC 9562)."""
    if effect.created_at is not None:
        return effect.created_at
    return datetime.fromtimestamp((effect.effect_id.int >> 80) / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Kit:
    """What connectors are built from; each takes what it needs."""

    reach: Reach = field(default_factory=Reach)
    signing_secret: bytes | None = field(default=None, repr=False)
    slack: SlackClient | None = field(default=None, repr=False)
    mail_server: MailServer | None = field(default=None, repr=False)
    mail_from: str | None = None
    clock: Callable[[], float] = time.time  # seconds since 1970
    variables: Variables = field(default_factory=Variables)
    resolve: Resolve = resolve_host
    tls: ssl.SSLContext | None = field(default=None, repr=False)


class Connector(Protocol):
    """Performs one effect type and can say what became of an effect.

    A connector's module has `EFFECT_TYPE`, `OUTCOMES` (what each answer comes to) and `build(kit)`; it may
    have `addresses(policy)`: URLs that it would call, by key, for the doctor. Each of the two calls begins
    with `outside_transaction()`, keeps within `effect.policy.timeout_seconds` and raises nothing: what
    escapes counts as Unknown. Cancellation passes through; whoever cancels a started effect must treat it
    as unknown.
    """

    @property
    def effect_type(self) -> str:
        """The name that `effect.type` in policy.toml chooses it by."""

    def idempotent(self, effect: Effect) -> bool:
        """Whether the target deduplicates this effect, so that an ambiguous send may be repeated."""

    async def send(self, effect: Effect) -> SendOutcome:
        """Try once to do it."""

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        """Ask the provider whether it was done, without changing anything there."""


async def perform(connector: Connector, effect: Effect) -> SendOutcome:
    """Send once; whatever the connector lets escape, or answers beside the contract, is Unknown.

    Raises NetworkInTransaction before anything is tried. CancelledError passes through.
    """
    outside_transaction()
    try:
        outcome: object = await connector.send(effect)
    except Exception as error:  # noqa: BLE001 - the request may have left: no fault is proof that it did not
        _report(effect, error)
        return Unknown("escaped", asked=False)
    return outcome if isinstance(outcome, SendOutcome) else Unknown("escaped", asked=False)


async def ask(connector: Connector, effect: Effect) -> LookUpOutcome:
    """Look up once; whatever escapes is no answer. Raises like `perform`."""
    outside_transaction()
    try:
        outcome: object = await connector.look_up(effect)
    except Exception as error:  # noqa: BLE001 - a look-up that fails says nothing about the effect
        _report(effect, error)
        return NoAnswer("escaped")
    return outcome if isinstance(outcome, LookUpOutcome) else NoAnswer("escaped")


def _report(effect: Effect, error: Exception) -> None:
    """Name the class only: the message may hold an address, a token or the payload."""
    escaped = type(error).__name__
    _log.error("connector %s let %s escape, effect %s", effect.effect_type, escaped, effect.effect_id)
