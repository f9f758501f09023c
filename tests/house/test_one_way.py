"""Only the named statements decide: no second way to spend a question, count a vote or write a revision.

Not here: what they do (tests/flow).
"""

import re

import pytest

from store.queries import Query, load

EVERY = sorted(load().values(), key=lambda query: query.name)
SET: dict[str, tuple[str, set[str]]] = {
    "spends a question": (
        r"\bUPDATE\s+approvals\b[^;]*?\bSET\b[^;]*?\bconsumed_at\s*=",
        {"vote", "let_through"},  # a person, or the gate that the policy names
    ),
    "decides at once": (r"\bINSERT\s+INTO\s+approvals\s*\([^)]*\bconsumed_at\b", {"cancel_draft"}),
    "writes a vote": (r"\b(INSERT\s+INTO|UPDATE)\s+votes\b", {"vote"}),
    "writes a revision": (r"\bINSERT\s+INTO\s+revisions\b", {"write_revision"}),
    "changes a revision": (r"\bUPDATE\s+revisions\b", set()),
    "removes a decision": (r"\bDELETE\s+FROM\s+(approvals|votes|revisions|redrafts)\b", set()),
    "keeps a wish": (r"\bINSERT\s+INTO\s+redrafts\b", {"open_redraft"}),
    "moves a draft's revision on": (
        r"\brevision\s*=\s*d\.revision\s*\+\s*1",
        {"edit_draft", "revise_draft", "use_redraft"},
    ),
}
# What every statement that a person's token lets through has to test, before it writes anything.
TESTS = {
    "the token's hash": r"t\.token_hash = (%\(token_hash\)s|g\.token_hash)",
    "what the token is for": r"t\.decision = ",
    "the revision": r"t\.revision = (%\(revision\)s|g\.revision)",
    "the surface": r"t\.surface = (%\(surface\)s|g\.surface)",
    "the token's end": r"t\.expires_at > clock_timestamp\(\)",
}
PENDING = {
    "the open question": r"a\.ended_at IS NULL",
    "the draft": r"d\.status = 'pending'",
    "the draft's end": r"d\.expires_at > clock_timestamp\(\)",
    "the head's version": r"h\.source_version = d\.known_version",
    "the run": r"r\.state = 'awaiting_human'",
    "that nothing is being redrafted": r"NOT EXISTS \(SELECT FROM redrafts",
}


# Each of these is done by the statements named here and by no other.
@pytest.mark.parametrize("what", SET)
def test_one_way(what: str) -> None:
    pattern, names = SET[what]
    assert {query.name for query in EVERY if _does(query, pattern)} == names


def _does(query: Query, pattern: str) -> bool:
    """Whether a statement does that; each of its writes is looked at as far as the next."""
    writes = re.split(r"(?=\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|SELECT)\b)", query.text)
    return any(re.search(pattern, write) for write in writes)


# Whatever a person's token lets through tests the token whole; what answers a question, the question too.
@pytest.mark.parametrize("name", ["vote", "edit_draft", "open_redraft", "cancel_draft"])
def test_every_answer_passes_the_same_tests(name: str) -> None:
    text = load()[name].text
    wanted = TESTS if name == "cancel_draft" else TESTS | PENDING
    assert [what for what, pattern in wanted.items() if not re.search(pattern, text)] == []
