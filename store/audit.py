"""Appends to the record, reads it and proves that nothing in it was altered.

Not here: what may be recorded (bot/policy/redaction) or who asks for a proof (bot/wiring).
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from store.queries import Connection, query
from store.rows import AuditRow, ChainName

SYSTEM = "system"
_SALT_BYTES = 16  # As NIST SP 800-132 advises: a guessed detail cannot be proven from its hash.
_FIRST = bytes(32)

_APPEND = query("append_audit")
_LOCK_SYSTEM = query("lock_system_chain")
_READ = query("read_chain")
_CHAINS = query("list_chains")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line for the record: who did what to which key; `detail` holds ids and words, never a secret."""

    chain: str
    actor: str
    action: str
    detail: Mapping[str, Any]


def seal(detail: Mapping[str, Any]) -> tuple[str, str]:
    """Write a line's detail as it is stored, with a fresh salt in hex before it."""
    return os.urandom(_SALT_BYTES).hex(), orjson.dumps(detail, option=orjson.OPT_SORT_KEYS).decode()


async def append(conn: Connection, entries: Sequence[Entry]) -> None:
    """Append lines in the caller's transaction, which holds the lock that serialises each chain.

    Several lines of one chain are put in order by several statements.
    """
    waiting = list(entries)
    while waiting:
        batch: dict[str, Entry] = {}
        rest = []
        for entry in waiting:
            if entry.chain in batch:
                rest.append(entry)
            else:
                batch[entry.chain] = entry
        await _append_each_once(conn, list(batch.values()))
        waiting = rest


async def _append_each_once(conn: Connection, entries: Sequence[Entry]) -> None:
    # One JSON text, not five arrays: quoting each element of an array costs more than all the rest of intake.
    lines = [
        {
            "chain": entry.chain,
            "actor": entry.actor,
            "action": entry.action,
            "salt": salt,
            "detail": detail,
        }
        for entry in entries
        for salt, detail in (seal(entry.detail),)
    ]
    await _APPEND.run(conn, {"lines": orjson.dumps(lines).decode()})


async def append_system(conn: Connection, actor: str, action: str, detail: Mapping[str, Any]) -> None:
    """Append a line that belongs to no key."""
    await _LOCK_SYSTEM.value(conn)
    await append(conn, [Entry(SYSTEM, actor, action, detail)])


async def read_chain(conn: Connection, chain: str) -> list[AuditRow]:
    """Give the lines of one chain in order."""
    return await _READ.rows(conn, {"chain": chain}, AuditRow)


async def list_chains(conn: Connection, *, after: str, most: int) -> list[str]:
    """Give up to `most` chain names that come after `after`."""
    return [row.chain for row in await _CHAINS.rows(conn, {"after": after, "most": most}, ChainName)]


def line_hash(previous: bytes, row: AuditRow) -> bytes:
    """Recompute what the database's audit_hash must have given, independently of it."""
    at = row.at.astimezone(UTC)
    fields = (row.chain, str(row.seq), _microseconds(at), row.actor, row.action, row.detail_hash.hex())
    return hashlib.sha256(previous + "\n".join(fields).encode()).digest()


def _microseconds(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond:06d}Z"


def faults_of(rows: Sequence[AuditRow]) -> list[str]:
    """Say what is wrong with one whole chain; empty when it holds.

    A detail that is gone was erased and is no fault; one that is there must fit its hash.
    """
    faults = []
    previous = _FIRST
    for place, row in enumerate(rows, start=1):
        if row.seq != place:
            faults.append(f"{row.chain}: line {place} is missing")
        if line_hash(previous, row) != row.hash:
            faults.append(f"{row.chain}: line {row.seq} was altered, or a line before it is missing")
        if row.detail is not None and row.salt is not None:
            detail_hash = hashlib.sha256(row.salt + row.detail.encode()).digest()
            if detail_hash != row.detail_hash:
                faults.append(f"{row.chain}: the detail of line {row.seq} was altered")
        previous = row.hash
    return faults
