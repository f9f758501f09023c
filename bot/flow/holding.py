"""Does slow work while the lease it needs is renewed beside it; a lost lease ends the work.

Ground of draft and redrafter. Not here: what is leased (store/runs, store/redrafts) or what is done.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from bot.drafting.faults import LostLease
from bot.policy.limits import RENEW_SECONDS
from store.errors import DatabaseAway, LostRace

log = logging.getLogger(__name__)

T = TypeVar("T")
Renew = Callable[[], Awaitable[None]]


async def while_held(work: Coroutine[Any, Any, T], renew: Renew, *, what: str) -> T:
    """Give what the work gives. `renew` raises LostRace once the lease is lost; `what` is for the log.

    Raises:
        LostLease: a renewal found the lease gone before the work was done.

    """
    working = asyncio.create_task(work)
    renewing = asyncio.create_task(_keep(renew, what))
    try:
        await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise LostLease("renewal")
        return await working
    finally:
        for task in (working, renewing):
            task.cancel()
        await asyncio.gather(working, renewing, return_exceptions=True)


async def _keep(renew: Renew, what: str) -> None:
    """Renew until the lease is lost; a database that is away may come back before the lease ends."""
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            await renew()
        except LostRace:
            return
        except DatabaseAway:
            log.warning("a lease could not be renewed", extra={"lease_of": what})
