"""Socket Mode: hands envelopes to Bolt as if they were requests, and gives back the body of its answer.

Not here: the line they come by (bot/slack/socket), or what Bolt calls (listeners). No signature is checked:
Slack alone writes on a line whose address it gave us for our token.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest

from bot.doors.listeners import Handlers, tell_unreadable
from bot.slack.line import Envelope

log = logging.getLogger(__name__)


class SocketDoor:
    """The same app, and the same answers, as over HTTP."""

    def __init__(self, app: AsyncApp, handlers: Handlers) -> None:
        self._app = app
        self._handlers = handlers

    async def take(self, envelope: Envelope) -> Mapping[str, Any] | None:
        """Answer one envelope; whatever it holds, it is acknowledged, for Slack sends it to nobody else."""
        if not isinstance(envelope.payload, dict):
            log.warning("an envelope from Slack carried no object")
            return None
        try:
            request = AsyncBoltRequest(mode="socket_mode", body=envelope.payload)
            return _body(await self._app.async_dispatch(request))
        except Exception as fault:  # noqa: BLE001 - Bolt fell over the shape; its text may hold the body
            log.warning("an envelope from Slack was not understood", extra={"fault": type(fault).__name__})
            tell_unreadable(self._handlers, envelope.payload)
            return None


def _body(answer: BoltResponse) -> Mapping[str, Any] | None:
    """What Bolt would have said over HTTP: JSON, or the plain text of a command's answer."""
    text = answer.body
    if not text:
        return None
    if answer.first_headers_without_set_cookie().get("content-type", "").startswith("application/json"):
        said = json.loads(text)
        return said if isinstance(said, dict) else None
    return {"text": text}
