"""The connector for `effect.type = "http"`: a signed POST to one allowed address, and a look-up to reconcile.

Not here: which addresses are allowed (reach) or what each answer means (answers).
"""

import asyncio

from bot.connectors import answers
from bot.connectors.answers import Row, id_at, judge, read_json, says_false, settle
from bot.connectors.connector import Effect, Kit
from bot.connectors.dress import Wardrobe, same_host
from bot.connectors.exchange import Answered, Call, Exchange, Failed
from bot.connectors.signing import sign_effect
from bot.contracts.outcome import Absent, Found, LookUpOutcome, NoAnswer, SendOutcome, Sent, Unknown
from bot.policy.clauses import EffectPolicy
from bot.policy.contradictions import EFFECT_ID_PLACEHOLDER
from store.database import outside_transaction

EFFECT_TYPE = "http"
OUTCOMES: tuple[Row, ...] = answers.OUTCOMES

FOUND, ABSENT, CONFLICT = 200, 404, 409
STARTED = {"message": "Workflow was started"}  # n8n's answer to every call, where none was made for it.


class HttpConnector:
    """Posts an effect's bytes; `Idempotency-Key` and `webhook-id` are the effect_id on every try."""

    effect_type = EFFECT_TYPE

    def __init__(self, kit: Kit) -> None:
        self._exchange = Exchange(kit.reach, resolve=kit.resolve, tls=kit.tls)
        self._wardrobe = Wardrobe(kit.variables, kit.tls)
        self._signing_secret = kit.signing_secret
        self._clock = kit.clock

    def idempotent(self, effect: Effect) -> bool:
        """As the policy says: only the admin knows whether the target deduplicates."""
        return effect.policy.idempotent

    async def send(self, effect: Effect) -> SendOutcome:
        """POST once. A 409 is looked up, where a lookup is configured, within the same deadline."""
        outside_transaction()
        loop = asyncio.get_running_loop()
        ends = loop.time() + effect.policy.timeout_seconds
        dress = self._wardrobe.dress(effect.policy.headers, effect.policy.client_pair)
        if dress is None:
            return settle("variable_not_set")
        headers = {
            **dress.headers,
            "content-type": "application/json",
            "idempotency-key": str(effect.effect_id),
            **self._signed(effect, effect.body),
        }
        call = Call("POST", effect.target, headers, effect.body, dress.tls)
        answer = await self._exchange.call(call, within_seconds=effect.policy.timeout_seconds)
        if isinstance(answer, Failed):
            return settle(answer.cause)
        if answer.status == CONFLICT and effect.policy.lookup:
            return _settle_conflict(await self._look_up(effect, within_seconds=ends - loop.time()))
        asked = effect.policy
        judged = judge(answer, response_id=asked.response_id, now=self._clock(), success=asked.success)
        return dress.keep_out_of(judged)

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        """GET the policy's `lookup`: 200 is found, 404 is absent, anything else says nothing.

        Nor does a 200 that no look-up gave: a page for people, as of a login, or n8n's own first answer.
        """
        outside_transaction()
        return await self._look_up(effect, within_seconds=effect.policy.timeout_seconds)

    async def _look_up(self, effect: Effect, *, within_seconds: float) -> LookUpOutcome:
        if not effect.policy.lookup:
            return NoAnswer("no_lookup")
        url = effect.policy.lookup.replace(EFFECT_ID_PLACEHOLDER, str(effect.effect_id))
        own = same_host(url, effect.target)  # secrets go nowhere else
        dress = self._wardrobe.dress(
            effect.policy.headers if own else {}, effect.policy.client_pair if own else None
        )
        if dress is None:
            return NoAnswer("variable_not_set")
        call = Call("GET", url, {**dress.headers, **self._signed(effect, b"")}, tls=dress.tls)
        answer = await self._exchange.call(call, within_seconds=within_seconds)
        if isinstance(answer, Failed):
            return NoAnswer(answer.cause)
        return _read_look_up(answer, effect.policy.response_id)

    def _signed(self, effect: Effect, body: bytes) -> dict[str, str]:
        return sign_effect(effect, body, secret=self._signing_secret, now=self._clock())


def addresses(policy: EffectPolicy) -> dict[str, str]:
    """What it may call, by the key that says so."""
    found = {"target": policy.target}
    if policy.lookup:
        found["lookup"] = policy.lookup.replace(EFFECT_ID_PLACEHOLDER, "id")
    return found


def build(kit: Kit) -> HttpConnector:
    """The connector, with an exchange of its own."""
    return HttpConnector(kit)


def _settle_conflict(found: LookUpOutcome) -> SendOutcome:
    """A 409 may mean "already done": only the look-up can tell, and where it says nothing nobody knows."""
    match found:
        case Found(provider_id):
            return Sent(provider_id)
        case Absent():
            return settle("http_409")
        case NoAnswer():
            return Unknown("http_409")


def _read_look_up(answer: Answered, response_id: str | None) -> LookUpOutcome:
    if answer.status == ABSENT:
        return Absent()
    if answer.status != FOUND:
        return NoAnswer("redirect" if 300 <= answer.status < 400 else f"http_{answer.status}")  # noqa: PLR2004
    if answer.flaw is not None:
        return NoAnswer(answer.flaw)
    document = read_json(answer.body)
    provider_id = id_at(document, response_id)
    if says_false(document, also="found"):
        return NoAnswer("says_false")
    if response_id is not None and provider_id is None:
        return NoAnswer("no_response_id")
    if response_id is None and (document == STARTED or answer.body.lstrip().startswith(b"<")):
        return NoAnswer("no_proof")
    return Found(provider_id)
