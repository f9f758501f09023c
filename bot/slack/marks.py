"""Message metadata of ours: by it a post is found again whose answer was lost.

Not here: posting (client) or finding (find).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_EVENT_TYPE: Final = re.compile(r"[a-z][a-z0-9_]{0,254}")
_OPAQUE: Final = re.compile(r"[A-Za-z0-9_.:\-]{0,128}")


@dataclass(frozen=True, slots=True)
class Marks:
    """Message metadata by which a post is found again: flat, and opaque, for every app and user can read it.

    Raises ValueError on a name Slack would refuse, or on a value that looks like text.
    """

    event_type: str
    values: Mapping[str, str | int]

    def __post_init__(self) -> None:
        names = [self.event_type, *self.values]
        if not all(_EVENT_TYPE.fullmatch(name) for name in names):
            raise ValueError("metadata names are a-z, 0-9 and _, and begin with a letter")
        if not all(_OPAQUE.fullmatch(str(value)) for value in self.values.values()):
            raise ValueError("metadata values are ids or hashes, never text")

    def as_slack(self) -> dict[str, Any]:
        """The shape that chat.postMessage takes."""
        return {"event_type": self.event_type, "event_payload": dict(self.values)}
