"""The stage of the demo: the environment that `serve` finds, and the policy with the pretend world's address.

Not here: starting anything (run). Every secret is made at random for one evening and is worth nothing.
"""

import secrets
import socket
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bot.cards.words import TABLES
from bot.demo.events import SOURCE
from bot.demo.model_script import MODEL_NAME
from bot.demo.slack_workspace import C_OPS, S_ADMINS

POLICY: Final = Path(__file__).with_name("policy.toml")
_PLACEHOLDER: Final = "http://world.example"


@dataclass(frozen=True, slots=True)
class Secrets:
    """What both sides must know."""

    intake: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    effects: str = field(default_factory=lambda: "whsec_" + b64encode(secrets.token_bytes(24)).decode())


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the stand-ins listen; `world` without a slash at the end, `mail` as host and port."""

    slack_api: str
    model: str
    world: str
    mail: str = "127.0.0.1:9"  # the discard port: mail that nobody takes


def write_policy(world_url: str, folder: Path) -> Path:
    """Write the demo's policy with its targets at the pretend world; returns the file."""
    file = folder / "policy.toml"
    file.write_text(POLICY.read_text(encoding="utf-8").replace(_PLACEHOLDER, world_url), encoding="utf-8")
    return file


def environment(
    addresses: Addresses, known: Secrets, slack: tuple[str, str], *, folder: Path, port: int
) -> dict[str, str]:
    """What `serve` reads; `slack` is the bot's token and the signing secret."""
    token, signing_secret = slack
    return {
        "DATA_DIR": str(folder / "data"),
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "SLACK_API_URL": addresses.slack_api,
        "SLACK_BOT_TOKEN": token,
        "SLACK_SIGNING_SECRET": signing_secret,
        "OPENAI_API_KEY": "pretend",
        "OPENAI_BASE_URL": addresses.model,
        "OPENAI_MODEL": MODEL_NAME,
        "INTAKE_TOKENS": f"{SOURCE}:{known.intake}",
        "EFFECT_SIGNING_SECRET": known.effects,
        "EFFECT_ALLOWED_HOSTS": addresses.world.removeprefix("http://"),
        "SMTP_URL": f"smtp://{addresses.mail}",
        "MAIL_FROM": "Parcel service <parcels@stet.example>",
        "AI_ACTIONS_ENABLED": "true",
        "POLICY_FILE": str(write_policy(addresses.world, folder)),
        "ADMIN_USERS": S_ADMINS,
        "OPS_CHANNEL": C_OPS,
        "LOG_LEVEL": "WARNING",
        "LOG_FORMAT": "text",
    }


def language_in(environ: Mapping[str, str]) -> dict[str, str]:
    """The language that was asked for, if it is one of ours: other programs set LANGUAGE to other words."""
    asked = environ.get("LANGUAGE", "")
    return {"LANGUAGE": asked} if asked in TABLES else {}


def free_port(wanted: int) -> int:
    """The port that was asked for if nobody has it, else any that is free."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port of this machine is free")
