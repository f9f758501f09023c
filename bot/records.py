"""The commands over the record: verify every chain, print one.

Not here: how a line is hashed (store/audit) or what is recorded (bot/flow).
"""

from collections.abc import Callable

from store import audit
from store.database import Database

CHAINS_AT_ONCE = 500  # A page of names: bounds memory, and a record of a million keys is two thousand pages.


async def verify_record(dsn: str, say: Callable[[str], None]) -> int:
    """Check every chain, say what is wrong, and give 1 if anything is."""
    faults = 0
    chains = 0
    db = Database(dsn)
    await db.open()
    try:
        async with db.connection() as conn:
            after = ""
            while names := await audit.list_chains(conn, after=after, most=CHAINS_AT_ONCE):
                for name in names:
                    chains += 1
                    for fault in audit.faults_of(await audit.read_chain(conn, name)):
                        faults += 1
                        say(fault)
                after = names[-1]
    finally:
        await db.close()
    say(f"{chains} chains, {faults} faults")
    return 1 if faults else 0


async def show_chain(dsn: str, key: str, say: Callable[[str], None]) -> int:
    """Say the history of one key, oldest first; 1 if the record knows nothing of it."""
    db = Database(dsn)
    await db.open()
    try:
        async with db.connection() as conn:
            lines = await audit.read_chain(conn, key)
    finally:
        await db.close()
    if not lines:
        say(f"The record knows no key {key}. A key is written source:kind:event_key.")
        return 1
    for line in lines:
        at = line.at.strftime("%Y-%m-%d %H:%M:%S")
        say(f"{line.seq:>4}  {at}  {line.actor:<28}  {line.action:<20}  {line.detail or '(erased)'}")
    return 0
