"""Claims and what is picked under the locks of limits take the same effects for due.

Not here: what they do (tests/flow/test_dispatch, tests/flow/test_limits).
"""

import re

from store.queries import query

DUE = re.compile(
    r"WHERE e\.state = 'pending' AND e\.lane = room\.lane(.*?)ORDER BY e\.next_attempt_at", re.DOTALL
)


# What makes an effect due stands in two statements, word for word the same.
def test_due_means_the_same() -> None:
    (claimed,) = DUE.findall(query("claim_effects").text)
    (picked,) = DUE.findall(query("pick_effects").text)
    assert claimed == picked
    assert "next_attempt_at <= room.due_by" in claimed
