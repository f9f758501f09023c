"""What the pretend model does next, ordered step by step, and what it has heard so far.

Not here: the wire (model) and the words of a sensible draft (model_words).
"""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.demo.model_words import write_draft

MODEL_NAME = "stand-in-1"
FINGERPRINT = "fp_stand_in"
JOURNAL_LENGTH = 1_000  # the demo may run for days

# How the connection is treated; everything else is answered over it.
DROP_UNREAD = "drop_unread"  # reset, the body unread
DROP = "drop"  # closed when the request has been read
CUT = "cut"  # closed in the middle of the answer
HANG = "hang"  # nothing until released, then closed
HOLD = "hold"  # nothing until released, then answered
TALK = "talk"


@dataclass(frozen=True, slots=True)
class Step:
    """One reply. `content` None with no other order means: a sensible draft."""

    how: str = TALK
    status: int = 200
    content: str | None = None
    wrap: str = "{}"  # put around the content: a fence, a thinking block
    finish_reason: str = "stop"
    message: dict[str, Any] = field(default_factory=dict)  # members laid over the message
    raw: str | None = None  # the whole body, instead of a completion
    headers: dict[str, str] = field(default_factory=dict)
    only_with_format: bool = False  # applies only to requests that carry response_format


def say(content: str) -> Step:
    """Answer exactly this text."""
    return Step(content=content)


def fenced(content: str | None = None) -> Step:
    """Answer in a code fence with prose around it."""
    return Step(content=content, wrap="Here you go:\n```json\n{}\n```\nAnything else?")


def thinking(thought: str, content: str | None = None) -> Step:
    """Answer with a visible thinking block before it."""
    return Step(
        content=content, wrap=f"<think>{thought}</think>\n".replace("{", "{{").replace("}", "}}") + "{}"
    )


def empty(reasoning: str, *, name: str = "reasoning", content: str | None = "") -> Step:
    """Answer no content, and text in a reasoning field; `content` None sends null."""
    return Step(content="", message={"content": content, name: reasoning})


def truncated(content: str) -> Step:
    """Answer text that the token limit has cut."""
    return Step(content=content, finish_reason="length")


def refuse() -> Step:
    """Decline in the refusal field."""
    return Step(content="", message={"content": None, "refusal": "I cannot help with that."})


def filtered() -> Step:
    """End by the content filter."""
    return Step(content="", finish_reason="content_filter")


def fail(
    status: int,
    message: str = "The stand-in was told to fail.",
    *,
    code: str | None = None,
    retry_after: str = "",
) -> Step:
    """Answer an error as OpenAI words it."""
    error = {"error": {"message": message, "type": code or "error", "code": code}}
    headers = {"retry-after": retry_after} if retry_after else {}
    return Step(status=status, raw=json.dumps(error), headers=headers)


def fail_on_format(status: int, message: str = "response_format type must be text or json_object") -> Step:
    """Refuse requests that carry response_format, answer the others."""
    error = {"error": {"message": message}}
    return Step(status=status, raw=json.dumps(error), only_with_format=True)


ERROR_IN_200 = Step(raw='{"error": {"message": "upstream went away", "code": 502}}')
NO_CHOICES = Step(raw='{"id": "1", "object": "chat.completion", "choices": []}')
NOT_JSON = Step(raw="<html>Bad gateway</html>")
REDIRECT = Step(status=307, raw="", headers={"location": "/elsewhere/v1/chat/completions"})

# For the switches of the demo's page: what holds for every request until another is chosen.
MOODS: dict[str, Step | None] = {
    "sensible": None,
    "slow": Step(how=HOLD),
    "thinking": thinking("They are cross. {careful}"),
    "fenced": fenced(),
    "prose": say("Sure! I will answer them on Monday."),
    "truncated": truncated('{"subject":"Re: your mess'),
    "empty": empty("I would write a kind answer."),
    "refuses": refuse(),
    "rate limit": fail(429, code="rate_limit_exceeded", retry_after="5"),
    "quota gone": fail(429, code="insufficient_quota"),
    "down": fail(503),
    "cuts": Step(how=CUT),
    "hangs": Step(how=HANG),
}


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as it arrived, and how it was treated."""

    body: dict[str, Any]
    authorized: bool
    step: Step


class Script:
    """Steps are used up one a request, then `always` applies; without either the model behaves."""

    def __init__(self) -> None:
        self.requests = 0
        self.journal: deque[Heard] = deque(maxlen=JOURNAL_LENGTH)
        self._steps: deque[Step] = deque()
        self._always = Step()
        self._gate = asyncio.Event()
        self._arrivals: list[tuple[int, asyncio.Event]] = []

    def then(self, *steps: Step) -> None:
        """Order the next replies."""
        self._steps.extend(steps)

    def always(self, step: Step | None) -> None:
        """Order what happens when no step is left; None behaves."""
        self._always = step or Step()

    def release(self) -> None:
        """Let every request go that hangs or is held now; later ones wait for the next release."""
        self._gate.set()
        self._gate = asyncio.Event()

    def reset(self) -> None:
        """Forget all orders and all that was heard, and let go of what hangs."""
        self.release()
        self.requests = 0
        self.journal.clear()
        self._steps.clear()
        self._always = Step()

    def released(self) -> asyncio.Event:
        """The event that the next `release` sets."""
        return self._gate

    async def arrived(self, count: int) -> None:
        """Wait until that many requests have arrived since the last reset."""
        if self.requests < count:
            here = asyncio.Event()
            self._arrivals.append((count, here))
            await here.wait()

    def hear(self, body: dict[str, Any], *, authorized: bool) -> Step:
        """Note a request and take the step for it."""
        step = self._steps.popleft() if self._steps else self._always
        if step.only_with_format and "response_format" not in body:
            step = Step()
        self.requests += 1
        self.journal.append(Heard(body, authorized, step))
        for count, here in self._arrivals:
            if self.requests >= count:
                here.set()
        self._arrivals = [each for each in self._arrivals if not each[1].is_set()]
        return step


def write_body(step: Step, request: Mapping[str, Any], number: int) -> str:
    """Write the body of an answer, as the step wants it."""
    if step.raw is not None:
        return step.raw
    content = step.wrap.format(write_draft(request) if step.content is None else step.content)
    asked = sum(len(str(each.get("content"))) for each in request.get("messages", []))
    completion = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL_NAME,
        "system_fingerprint": FINGERPRINT,
        "choices": [
            {
                "index": 0,
                "finish_reason": step.finish_reason,
                "message": {"role": "assistant", "content": content, **step.message},
            }
        ],
        # Four characters a token, as the rule of thumb goes; never nothing.
        "usage": {"prompt_tokens": asked // 4 + 1, "completion_tokens": len(content) // 4 + 1},
    }
    return json.dumps(completion)
