"""The requests that are sent, made beforehand: events with a bearer or signed, clicks as Slack sends them.
Not here: sending them (load).
"""

import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bot.policy.signatures import SignedMessage, sign

TOKEN = "bench-token-of-intake"
INTAKE_SECRET = b"a secret whose bytes are text"
SLACK_SECRET = "bench-signing-secret"
TEAM, REVIEWER, CHANNEL, TS = "T0HOME", "U0ALICE", "C0REVIEW", "1700000000.000100"
EVENT_BYTES = 1024


def pack(file: Path, requests: Iterable[bytes]) -> Path:
    """Write requests as the load generator reads them."""
    with file.open("wb") as packed:
        for request in requests:
            packed.write(b"%d\n" % len(request))
            packed.write(request)
    return file


def post(path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """One request of HTTP/1.1, as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def event(number: int, *, run: str, draft: bool = False, kind: str = "customer_email") -> dict[str, Any]:
    """An event of 1 KB of its own."""
    made: dict[str, Any] = {
        "event_key": f"{run}-{number}",
        "kind": kind,
        "entity": f"customer:{run}:{number}",
        "source_version": 17,
        "payload": {"to": "amy@example.test", "subject": "Late parcel", "ticket_id": number},
    }
    if draft:
        made["draft"] = {"subject": "About your parcel", "body": "It ships on Monday. " * 5}
    missing = EVENT_BYTES - len(json.dumps(made)) - len(', "text": ""')
    made["payload"]["text"] = "Where is it? " * (missing // 13)
    return made


def bearer_event(made: Mapping[str, Any]) -> bytes:
    """An event with a bearer token."""
    body = json.dumps(made).encode()
    return post("/events", body, {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"})


def signed_event(made: Mapping[str, Any]) -> bytes:
    """An event signed by Standard Webhooks, good for five minutes."""
    body, name, now = json.dumps(made).encode(), str(made["event_key"]), str(int(time.time()))
    signed = {
        "content-type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": now,
        "webhook-signature": sign(INTAKE_SECRET, SignedMessage(name, now, body)),
    }
    return post("/events", body, signed)


def clicks(tokens: Sequence[str], *, channel: str = CHANNEL, ts: str = TS) -> list[bytes]:
    """A press on approve for each token, with the message as Slack sends it along."""
    return [click(token, channel, ts) for token in tokens]


def click(token: str, channel: str, ts: str) -> bytes:
    """One press on approve."""
    text = {"type": "plain_text", "text": "Where is it? " * 20}
    payload = {
        "type": "block_actions",
        "user": {"id": REVIEWER, "username": "alice", "name": "alice", "team_id": TEAM},
        "api_app_id": "A0STET",
        "token": "verification",
        "container": {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": False},
        "trigger_id": "1.2.3",
        "team": {"id": TEAM, "domain": "home"},
        "channel": {"id": channel, "name": "review"},
        "message": {"type": "message", "ts": ts, "blocks": [{"type": "section", "text": text}] * 6},
        "state": {"values": {}},
        "response_url": "https://hooks.slack.example/actions/1",
        "actions": [
            {
                "action_id": "stet.approve",
                "block_id": "b",
                "text": {"type": "plain_text", "text": "Approve"},
                "value": f"{token}.1",
                "type": "button",
                "action_ts": "1700000001.000100",
            }
        ],
    }
    body = urlencode({"payload": json.dumps(payload)}).encode()
    now = str(int(time.time()))
    digest = hmac.new(SLACK_SECRET.encode(), b"v0:" + now.encode() + b":" + body, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": now,
        "x-slack-signature": f"v0={digest}",
    }
    return post("/slack/events", body, headers)
