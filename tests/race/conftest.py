"""Tests here start real processes.
Not here: the fixtures themselves (tests/stages).
"""

from tests.stages import nursery, stage, watch

__all__ = ["nursery", "stage", "watch"]
