"""The headers by which a target recognises us, and an effect that comes again.

Not here: what a signature is (bot/policy/signatures) or which requests carry it (http, resume).
"""

from bot.connectors.connector import Effect
from bot.policy.signatures import SignedMessage, sign


def sign_effect(effect: Effect, body: bytes, *, secret: bytes | None, now: float) -> dict[str, str]:
    """Standard Webhooks headers: fresh time on each try, the same id; unsigned without a secret.

    `now` is in seconds since 1970.
    """
    message = SignedMessage(str(effect.effect_id), str(int(now)), body)
    headers = {"webhook-id": message.message_id, "webhook-timestamp": message.timestamp}
    if secret is not None:
        headers["webhook-signature"] = sign(secret, message)
    return headers
