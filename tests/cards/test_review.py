"""The card of a draft: each state as its golden file, its buttons, its order, and what it never shows."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.cards import review
from bot.cards.blocks import shown_hash, text_length
from bot.cards.facts import linkable_host
from bot.cards.lives import Who
from bot.cards.status import is_open
from bot.cards.views import Buttons, Field, Pending, PendingNote, Source, Voting
from bot.contracts.click import APPROVE_ACTION, CANCEL_ACTION, READ_ACTION, REJECT_ACTION
from bot.demo.slack_blocks import block_problems
from tests.cards.samples import ALL_BUTTONS, ANNA, BEN, PLAIN, REVIEW_STATES, with_body

CANCELLABLE = {
    "queued",
    "queued_after_tries",
    "held",
    "kept_resting",
    "kept_by_cap",
    "kept_by_value",
    "paused",
    "scheduled",
    "several_waiting",
}
Golden = Callable[[str, object], None]


def buttons_of(blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    rows = (block["elements"] for block in blocks if block["type"] == "actions")
    return {element["action_id"]: element for row in rows for element in row}


def text_of(blocks: object) -> str:
    return json.dumps(blocks, ensure_ascii=False)


# Every state of the card is drawn as its golden file says, within Slack's limits.
@pytest.mark.parametrize("name", REVIEW_STATES)
def test_states(name: str, golden: Golden) -> None:
    view = REVIEW_STATES[name]
    blocks = review.render(view)
    golden(f"review_{name}", {"text": review.fallback(view), "blocks": blocks})
    assert block_problems(blocks) == []
    assert text_length(blocks) <= 10_000


# Each effect that can be taken back has a button of its own, with a dialog; without a value there is none.
def test_undo_buttons() -> None:
    found = buttons_of(review.render(REVIEW_STATES["several_sent"]))
    assert [found[name]["value"][0] for name in ("stet.undo", "stet.undo.2")] == ["g", "h"]
    assert "undo.example" in found["stet.undo"]["confirm"]["text"]["text"]
    assert not buttons_of(review.render(replace(REVIEW_STATES["several_sent"], undo=())))
    assert "stet.undo" not in buttons_of(review.render(REVIEW_STATES["undo_failed"]))


# Only a draft that waits for a decision has Approve and Reject; a settled one has no button but to read.
@pytest.mark.parametrize("name", REVIEW_STATES)
def test_decision_buttons_only_while_pending(name: str) -> None:
    view = REVIEW_STATES[name]
    found = set(buttons_of(review.render(view)))
    assert (REJECT_ACTION in found) == isinstance(view.state, Pending)
    assert (APPROVE_ACTION in found) == (isinstance(view.state, Pending) and review.fits(view))
    assert (CANCEL_ACTION in found) == (name in CANCELLABLE)


# A draft that does not stand whole on the card is approved in the modal: the card offers to read it.
def test_too_long_is_read_not_approved() -> None:
    view = with_body("word " * 3000)
    blocks = review.render(view)
    found = buttons_of(blocks)
    assert not review.fits(view)
    assert APPROVE_ACTION not in found
    assert READ_ACTION in found
    shown = sum(len(e["text"]) for e in _body_elements(blocks))
    assert f"Cut here, {15_000 - shown:,} characters not shown" in text_of(blocks)


def _body_elements(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    draft = next(block for block in blocks if block["block_id"].endswith(".draft"))
    quotes = [element for element in draft["elements"] if element["type"] == "rich_text_quote"]
    return list(quotes[-1]["elements"])


# A warning or label that is cut keeps Approve off the card too.
def test_cut_warning_is_not_approvable() -> None:
    assert not review.fits(replace(PLAIN, warnings=("w" * 301,)))
    assert not review.fits(replace(PLAIN, warnings=("w",) * 13))
    assert not review.fits(replace(PLAIN, labels=(Field("label", "x" * 301),)))
    assert not review.fits(replace(PLAIN, draft=(Field("n" * 81, "x"),)))


# Whether the card can carry Approve does not depend on the buttons that were minted.
@pytest.mark.parametrize("length", [7000, 7500, 8000, 8250, 8500, 9000])
def test_fit_is_independent_of_buttons(length: int) -> None:
    view = with_body("x" * length)
    assert review.fits(view) == review.fits(replace(view, buttons=Buttons()))
    assert text_length(review.render(view)) <= 10_000


# The order of contents is the contract's: action, draft, warnings, changes, facts, buttons, small print.
def test_order() -> None:
    blocks = review.render(REVIEW_STATES["pending_warned"])
    names = [block["block_id"].rsplit(".", 1)[1] for block in blocks]
    assert names == ["title", "state", "action", "draft", "warnings", "changes", "facts", "actions", "small"]


# Block ids are new for each version of the card, and button values are exactly the strings given.
def test_block_ids_and_values() -> None:
    ids = [{block["block_id"] for block in review.render(replace(PLAIN, version=v))} for v in (7, 8)]
    assert not ids[0] & ids[1]
    found = buttons_of(review.render(PLAIN))
    assert found[APPROVE_ACTION]["value"] == ALL_BUTTONS.approve
    assert found[REJECT_ACTION]["value"] == ALL_BUTTONS.reject


# The hash of what was shown ignores tokens and block ids, and nothing else.
def test_shown_hash() -> None:
    first = shown_hash(review.render(PLAIN))
    tokens = replace(PLAIN.buttons, approve="z" * 43 + ".2")
    assert first == shown_hash(review.render(replace(PLAIN, version=99, buttons=tokens)))
    assert first != shown_hash(review.render(with_body("other")))
    assert first != shown_hash(review.render(replace(PLAIN, warnings=("x",))))
    assert len(first) == 64


# The record is a link only on a host of the policy, over plain https, and shows that host.
@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://crm.example/tickets/1?a=b", "crm.example"),
        ("https://crm.example:443/x", "crm.example"),
        ("https://CRM.example/x", "crm.example"),
        ("http://crm.example/x", None),
        ("https://evil.example/crm.example", None),
        ("https://crm.example@evil.example/", None),
        ("https://me:pw@crm.example/", None),
        ("https://crm.example:8443/", None),
        ("https://crm.example.evil.example/", None),
        ("https://crm.example\\@evil.example/", None),
        ("https://crm.example/|Approve", None),
        ("https://crm.example/\u202egro", None),
        ("https://crm.example/ x", None),
        ("https://[::1", None),
        ("https://crm.example:x/", None),
        ("javascript:alert(1)", None),
    ],
)
def test_record_link(url: str, host: str | None) -> None:
    assert linkable_host(url, frozenset({"crm.example"})) == host
    blocks = review.render(replace(PLAIN, source=Source(url, frozenset({"crm.example"}))))
    links = [
        e for b in blocks for s in b.get("elements", []) for e in s.get("elements", []) if e["type"] == "link"
    ]
    assert [(link["url"], link["text"]) for link in links] == ([(url, host)] if host else [])
    assert block_problems(blocks) == []


# Who asked for it comes from the event and is shown as text, so that an event mentions nobody.
def test_requester_is_no_mention() -> None:
    blocks = review.render(replace(PLAIN, source=Source(requested_by="U0BOSS")))
    assert "U0BOSS" in text_of(blocks)
    assert '"user_id"' not in text_of(blocks)


# A card whose newer event failed to draft says so before anybody decides.
def test_newer_failed_warns() -> None:
    blocks = review.render(replace(PLAIN, state=Pending(PendingNote.NEWER_FAILED)))
    assert "no draft could be made for it" in text_of(blocks)


# A kind that nobody may decide on any more says so.
def test_nobody() -> None:
    assert "nobody" in text_of(review.render(replace(PLAIN, voting=Voting(()))))


# A draft without fields still makes a card.
def test_no_fields() -> None:
    assert block_problems(review.render(replace(PLAIN, draft=(), labels=()))) == []


# Votes are counted while the question is open; afterwards the card names who approved, and counts nothing.
@pytest.mark.parametrize("name", REVIEW_STATES)
def test_votes_are_counted_while_open(name: str) -> None:
    view = replace(REVIEW_STATES[name], voting=Voting((ANNA, BEN), quorum=2))
    drawn = json.dumps(review.render(view))
    assert ("Approvals:" in drawn) == is_open(view.state)


# As many votes as are needed, and open all the same: some of those people left, so the card claims no quorum.
@pytest.mark.parametrize(("voters", "claimed"), [((ANNA,), True), ((ANNA, BEN), False), ((ANNA,) * 3, False)])
def test_votes_of_who_left(voters: tuple[Who, ...], claimed: bool) -> None:
    view = replace(PLAIN, voting=Voting((ANNA, BEN), quorum=2, voters=voters))
    drawn = json.dumps(review.render(view))
    assert (f"{len(voters)} of 2" in drawn) == claimed
    assert ("Not all may decide any more; 2 who may must approve" in drawn) != claimed


# Once it is decided, the warnings no longer speak to somebody who is about to decide.
@pytest.mark.parametrize("name", REVIEW_STATES)
def test_warnings_title(name: str) -> None:
    view = replace(REVIEW_STATES[name], warnings=("More than 100 EUR.",))
    drawn = text_of(review.render(view))
    assert ("Before you decide" in drawn) == is_open(view.state)
    assert ("⚠️ Warnings" in drawn) != is_open(view.state)


# A field of nothing but spaces would look like no field at all: its place says what it is.
@pytest.mark.parametrize(
    ("text", "said"), [("", "(empty)"), ("   ", "(only spaces)"), ("\n\t", "(only spaces)")]
)
def test_blank_field(text: str, said: str) -> None:
    assert said in text_of(review.render(replace(PLAIN, draft=(Field("subject", text),))))


# Of what will never arrive the card says that nothing more is tried, and what is left to do, in words.
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("failed", "Nothing more is tried.|Only a newer event makes another draft."),
        ("failed_given_up", "is not sent again.|Please look at the target first"),
        ("several_mixed", "Nothing more is tried.|Only a newer event makes another draft."),
        ("several_part_sent", "Nothing more is tried.|Please do by hand what is no longer tried."),
        ("several_part_given_up", "is not sent again.|Please look at the target first: what was given up"),
        ("undo_failed", "Nothing more is tried.|Please take it back at the target by hand."),
        ("undo_failed_askable", "Nothing more is tried.|You can ask for it again below"),
        ("undo_given_up", "is not sent again.|Please look at the target: if it was not taken back"),
    ],
)
def test_says_what_is_left_to_do(name: str, said: str) -> None:
    drawn = text_of(review.render(REVIEW_STATES[name]))
    assert [each for each in said.split("|") if each not in drawn] == []


# Overtaken by a newer event there is nothing to do: that one has a draft of its own.
def test_nothing_left_to_do_when_overtaken() -> None:
    drawn = text_of(review.render(REVIEW_STATES["several_overtaken"]))
    assert "Nothing more is tried." in drawn
    assert "by hand" not in drawn
