"""Time that passed, the sleep of a suspended machine included: for what must not seem younger than it is.

Not here: deadlines that other processes share, which are the database's, or waits inside one process.
"""

import time
from typing import Final

# CLOCK_MONOTONIC stands still while Linux is suspended (clock_gettime(2)); elsewhere it has to do.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_seconds() -> float:
    """Give the seconds since some fixed moment, which never go back and never stand still."""
    return time.clock_gettime(_CLOCK)
