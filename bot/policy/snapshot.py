"""What freezes onto a draft when it opens, so that a changed policy never changes an open question.
Not here: today's policy (kinds), and who still counts today (people).
"""

from collections.abc import Collection, Mapping
from typing import Any, Self

from pydantic import ConfigDict

from bot.policy.clauses import EffectTerms
from bot.policy.values import FROM_SNAPSHOT, Clause


class Snapshot(Clause):
    """The frozen part of a kind (SPEC section 7), as the drafts' row holds it. Times are in seconds."""

    # Rows outlive versions: what a later version added has a default, what it dropped is passed over.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str
    gate: str
    channel: str
    reviewers: tuple[str, ...]
    quorum: int
    separate_duties: bool
    expires_after_seconds: int
    fresh_for_seconds: int
    confirm: str
    regulated: bool
    qualified: tuple[str, ...]
    record_hosts: tuple[str, ...]
    editable: tuple[str, ...] | None
    output: dict[str, Any] | None
    effect: EffectTerms | None = None
    effects: tuple[EffectTerms, ...] = ()
    prompt_version: str | None = None
    ground: str | None = None
    redrafts: int = 0

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Self:
        """Read back what `as_row` wrote.

        Raises:
            pydantic.ValidationError: if it was never a snapshot.

        """
        return cls.model_validate(dict(row), context=FROM_SNAPSHOT, by_alias=False, by_name=True)

    def as_row(self) -> dict[str, Any]:
        """Give it as JSON values, for storing and for `keys.body_hash`."""
        row = self.model_dump(mode="json", by_alias=False)
        del row["effects" if self.effect is not None else "effect"]  # As in the file: exactly one of them.
        return row


def effects_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the effects of a stored snapshot, one or several, in the order of the policy file."""
    return list(row["effects"]) if "effects" in row else [row["effect"]]


def recipients_of(row: Mapping[str, Any]) -> list[str]:
    """Give the payload paths that the effects of a stored snapshot take their recipients from."""
    return [path for effect in effects_of(row) if (path := effect.get("recipient")) is not None]


def may_edit(name: str, editable: Collection[str] | None, recipients: Collection[str]) -> bool:
    """Say whether a reviewer may change a field: those listed, or (None) everything but the recipient.

    Recipients come from the payload; an output field of the same name says it to the target once more.
    """
    if editable is not None:
        return name in editable
    return name != "recipient" and all(name != path.rpartition(".")[2] for path in recipients)
