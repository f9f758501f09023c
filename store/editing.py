"""What a person writes into a pending draft: the content it starts from, and room for the next revision.

Not here: storing the content (store/drafts) or what may be edited (bot/policy/editing).
"""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import EditedDraft, Row, Spending

_FIND_CONTENT = query("find_content")
_EDIT = query("edit_draft")
_FIND_BY = query("find_revision_by")


class ContentRow(Row):
    """One revision's body and its event's payload; None where it was erased."""

    body: dict[str, Any] | None
    payload: dict[str, Any] | None


class _Number(Row):
    revision: int


async def find_content(conn: Connection, draft_id: UUID, revision: int) -> ContentRow | None:
    """Read what one revision says."""
    return await _FIND_CONTENT.maybe(conn, {"draft_id": draft_id, "revision": revision}, ContentRow)


async def edit_draft(conn: Connection, spending: Spending) -> EditedDraft:
    """Open the next revision and its question, under the head's lock; the content has to follow.

    Raises:
        LostRace: the question is over or has changed.

    """
    return await _EDIT.one(conn, asdict(spending) | {"approval_id": new_id()}, EditedDraft)


async def find_revision_by(conn: Connection, spending: Spending) -> int | None:
    """Read again whether this person's words became a revision, for a commit whose answer was lost."""
    params = {"token_hash": spending.token_hash, "subject": spending.subject}
    found = await _FIND_BY.maybe(conn, params, _Number)
    return found.revision if found else None
