"""The connector that tells a waiting execution the outcome: one POST to the URL it gave, as n8n answers it.

Not here: who waits and what is told (bot/flow/announce). n8n's answers were measured on 2.41.
"""

from collections.abc import Callable

from bot.connectors.answers import UNANSWERED, Row, by_cause, is_success, judge_status, settle
from bot.connectors.connector import Effect, Kit
from bot.connectors.exchange import Answered, Call, Exchange, Failed
from bot.connectors.signing import sign_effect
from bot.contracts.outcome import LookUpOutcome, NoAnswer, NotSent, Refused, SendOutcome, Sent, Unknown
from store.database import outside_transaction

EFFECT_TYPE = "resume"
FOLLOWS_OUTCOME = True  # No policy names it: whoever gave a resume_url gets it.

CONFLICT = 409
_WAITING = "webhook-waiting"  # The path under which n8n lets executions wait.

OUTCOMES: tuple[Row, ...] = (
    *UNANSWERED,
    Row("sent", Sent, "2xx: the execution goes on, whatever it makes of it"),
    Row("gone", Refused, "409 that says finished: nobody waits there any more"),
    Row("http_3xx", Refused, "never followed", "redirect"),
    Row("http_401", Refused, "n8n: the token in the URL is wrong; the execution still waits"),
    Row("http_404", NotSent, "n8n: not waiting there yet, or no more; attempts bound it"),
    Row("http_408", Unknown, "a gateway may say so after passing the request on"),
    Row("http_409", NotSent, "n8n: the Wait node is not reached yet; attempts bound it"),
    Row("http_425", NotSent, "RFC 8470: unwilling to process it yet"),
    Row("http_429", NotSent, "RFC 6585: not processed, too many requests"),
    Row("http_4xx", Refused, "read, and not done"),
    Row("http_5xx", Unknown, "n8n says so also after it went on, when several calls come at once"),
)
_TABLE = by_cause(OUTCOMES)


class ResumeConnector:
    """Posts an outcome; a 2xx is all there is to know: what the execution then answers is its own affair."""

    effect_type = EFFECT_TYPE

    def __init__(self, exchange: Exchange, signing_secret: bytes | None, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._signing_secret = signing_secret
        self._clock = clock

    def idempotent(self, effect: Effect) -> bool:
        """Only with a webhook suffix after the execution's id: without one a repeat opens the next gate."""
        steps = [step for step in effect.target.partition("?")[0].split("/") if step]
        return _WAITING in steps and len(steps) - steps.index(_WAITING) > 2  # noqa: PLR2004 - id and suffix

    async def send(self, effect: Effect) -> SendOutcome:
        """POST once, the same bytes to every waiter of a run and on every try."""
        outside_transaction()
        headers = {
            "content-type": "application/json",
            "idempotency-key": str(effect.effect_id),
            **sign_effect(effect, effect.body, secret=self._signing_secret, now=self._clock()),
        }
        call = Call("POST", effect.target, headers, effect.body)
        answer = await self._exchange.call(call, within_seconds=effect.policy.timeout_seconds)
        if isinstance(answer, Failed):
            return settle(answer.cause, _TABLE)
        if is_success(answer):
            return Sent(None)
        if answer.status == CONFLICT and _says_finished(answer):
            return settle("gone", _TABLE)
        return judge_status(answer, _TABLE, now=self._clock())

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        """Nobody can be asked: n8n tells nothing about what resumed an execution."""
        outside_transaction()
        return NoAnswer("no_lookup")


def build(kit: Kit) -> ResumeConnector:
    """The connector, with an exchange of its own."""
    return ResumeConnector(
        Exchange(kit.reach, resolve=kit.resolve, tls=kit.tls), kit.signing_secret, kit.clock
    )


def _says_finished(answer: Answered) -> bool:
    """n8n: "has finished already", "has finished with error"; everything else may still come to wait."""
    return b"has finished" in answer.body.lower()
