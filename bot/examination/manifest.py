"""The scopes of manifest.yml against those that Slack says our token has.

Not here: whether the manifest names what the code uses; tests/test_manifest.py holds it to that.
"""

from pathlib import Path
from typing import Final

import yaml

from bot.examination.finding import Finding

MANIFEST: Final = Path(__file__).parents[2] / "manifest.yml"
_WHAT: Final = "SLACK_BOT_TOKEN scopes"


def read_scopes(path: Path) -> frozenset[str] | None:
    """The bot scopes that a manifest asks for; None if it cannot be read."""
    try:
        scopes = yaml.safe_load(path.read_text(encoding="utf-8"))["oauth_config"]["scopes"]["bot"]
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError):
        return None
    return frozenset(scopes) if isinstance(scopes, list) and all(isinstance(s, str) for s in scopes) else None


def compare_scopes(granted: frozenset[str], path: Path = MANIFEST) -> Finding:
    """What the token lacks; what it has and we do not use is named and does no harm."""
    wanted = read_scopes(path)
    if wanted is None:
        return Finding(_WHAT, "manifest.yml cannot be read: put it back beside README.md")
    missing, unused = sorted(wanted - granted), sorted(granted - wanted)
    if missing:
        return Finding(
            _WHAT,
            f"it lacks {', '.join(missing)}: add them under OAuth & Permissions, or paste manifest.yml"
            " again, and reinstall the app",
        )
    more = f", and {', '.join(unused)}, which Stet does not use" if unused else ""
    return Finding(f"{_WHAT}: all of manifest.yml{more}")
