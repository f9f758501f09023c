"""Drafts as they open and take newer content, and their immutable revisions.

Not here: decisions about them (store/decisions) or going back to reviewers (store/heads).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from store.ids import new_id
from store.queries import Connection, query
from store.rows import RevisedDraft, Row

_KEEP_SNAPSHOT = query("keep_snapshot")
_FIND_OPEN = query("find_open_draft")
_OPEN = query("open_draft")
_REVISE = query("revise_draft")
_WRITE_REVISION = query("write_revision")


class OpenDraft(Row):
    """The open draft of a draft_key."""

    draft_id: UUID
    run_id: UUID
    status: str
    revision: int
    approval_id: UUID | None


@dataclass(frozen=True, slots=True)
class Frozen:
    """What of the policy goes onto the draft."""

    snapshot_hash: str
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Content:
    """One revision's content and where it comes from."""

    body: Mapping[str, Any]
    body_hash: str
    author: str
    model: str | None = None
    fingerprint: str | None = None
    prompt_version: str | None = None
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Opening:
    """Whose draft is opened or revised."""

    run_id: UUID
    draft_key: str
    entity: str
    frozen: Frozen

    def params(self) -> dict[str, Any]:
        """Give what the two statements share."""
        policy = self.frozen.body
        return {
            "run_id": self.run_id,
            "draft_key": self.draft_key,
            "kind": self.frozen.kind,
            "entity": self.entity,
            "snapshot_hash": self.frozen.snapshot_hash,
            "expires_after_seconds": policy["expires_after_seconds"],
            "quorum": policy["quorum"],
            "channel": policy["channel"],
            "approval_id": new_id(),
            "card_id": new_id(),
        }


async def find_open_draft(conn: Connection, draft_key: str) -> OpenDraft | None:
    """Lock and give the open draft of a draft_key; the head is locked already."""
    return await _FIND_OPEN.maybe(conn, {"draft_key": draft_key}, OpenDraft)


async def open_draft(conn: Connection, opening: Opening) -> RevisedDraft:
    """Open a new draft with its question and its card.

    Raises:
        LostRace: the run no longer holds the newest version.

    """
    await _keep(conn, opening.frozen)
    return await _OPEN.one(conn, opening.params() | {"draft_id": new_id()}, RevisedDraft)


async def revise_draft(conn: Connection, opening: Opening, draft_id: UUID) -> RevisedDraft:
    """Put newer content into a pending draft.

    Raises:
        LostRace: the run no longer holds the newest version, or the draft was decided.

    """
    await _keep(conn, opening.frozen)
    return await _REVISE.one(conn, opening.params() | {"draft_id": draft_id}, RevisedDraft)


async def write_revision(conn: Connection, made: RevisedDraft, run_id: UUID, content: Content) -> None:
    """Store the content of a revision that was just opened."""
    await _WRITE_REVISION.run(
        conn,
        {
            "draft_id": made.draft_id,
            "revision": made.revision,
            "run_id": run_id,
            "body": Jsonb(dict(content.body)),
            "body_hash": content.body_hash,
            "author": content.author,
            "model": content.model,
            "fingerprint": content.fingerprint,
            "prompt_version": content.prompt_version,
            "warnings": Jsonb(list(content.warnings)),
        },
    )


async def _keep(conn: Connection, frozen: Frozen) -> None:
    await _KEEP_SNAPSHOT.run(
        conn,
        {"snapshot_hash": frozen.snapshot_hash, "kind": frozen.kind, "body": Jsonb(dict(frozen.body))},
    )
