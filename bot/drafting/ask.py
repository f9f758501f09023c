"""What one draft needs and what it gives: the values that go into the model call and come out of it.
Not here: the call (model), and what a kind's policy says (bot/policy/kinds).
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bot.drafting.prompt import Redraft
from bot.policy.clauses import EffectPolicy, Rule
from bot.policy.limits import LEASE_SECONDS, PROCESSING_SECONDS
from bot.policy.rules import RuleVerdict

PROVIDER: Final = "openai-compatible"  # the provider class that the record names
# The 30 minutes of a claim, less one lease for storing what came of it.
TOTAL_SECONDS: Final = PROCESSING_SECONDS - LEASE_SECONDS


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Any OpenAI-compatible endpoint; `model` is used where a kind names none."""

    api_key: str = field(repr=False)
    model: str
    base_url: str = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Pace:
    """Time and chance, replaceable: how to wait, a number in [0, 1) for jitter, the Unix time in seconds."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    now: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Ask:
    """What one draft needs; `timeout_seconds` bounds a single request, `total_seconds` all of them."""

    kind: str
    prompt: str = field(repr=False)
    output: Mapping[str, Any] = field(repr=False)
    payload: Mapping[str, Any] = field(repr=False)
    timeout_seconds: float
    max_tokens: int
    model: str | None = None
    rules: tuple[Rule, ...] = ()
    sends: tuple[EffectPolicy, ...] = ()
    redraft: Redraft | None = None
    total_seconds: float = TOTAL_SECONDS


@dataclass(frozen=True, slots=True)
class Answer:
    """A draft that passed. Tokens are counted over all turns; `model` is what the endpoint says it was."""

    output: dict[str, Any] = field(repr=False)
    model: str
    fingerprint: str | None
    prompt_version: str
    prompt_tokens: int
    completion_tokens: int
    turns: int
    requests: int
    verdict: RuleVerdict
    provider: str = PROVIDER
