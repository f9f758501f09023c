"""The frozen values that rows become.

Not here: what a row means for a card or an answer (bot/).
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Row(BaseModel):
    """A row as read: frozen, and refusing columns it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditRow(Row):
    """One line of the record with its detail, if that was not erased."""

    chain: str
    seq: int
    at: datetime
    actor: str
    action: str
    detail_hash: bytes
    hash: bytes
    salt: bytes | None
    detail: str | None


class ChainName(Row):
    """The name of one chain of the record."""

    chain: str


class HeadRow(Row):
    """The newest version known of a draft_key."""

    draft_key: str
    source_version: int
    run_id: UUID
    draft_id: UUID | None


class ReopenedRow(Row):
    """A draft that is pending again, and the run it belongs to."""

    draft_id: UUID
    run_id: UUID


Json = dict[str, Any]
