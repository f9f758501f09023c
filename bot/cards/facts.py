"""Draws what surrounds a draft: warnings, changes, who decides, since when, where from, labels, small print.

The draft itself is in `draft`, the state in `status`; `review` and `modals` put the pieces together.
"""

from typing import Final
from urllib.parse import urlsplit

from bot.cards.blocks import (
    Block,
    Element,
    bullets,
    clip,
    date,
    lines,
    outside,
    people,
    person,
    phrase,
    rich,
    section,
    small,
    words,
)
from bot.cards.draft import NAME_TEXT, draw_changes, hidden_note, title_of
from bot.cards.status import RECIPIENT_TEXT, action_line, is_open, may_cancel
from bot.cards.text import length, visible
from bot.cards.views import Field, Pending, PendingNote, ReviewView, Source
from bot.cards.words import say

MOST_WARNINGS: Final = 12  # More is a wall nobody reads; the modal has them all, and Approve with them.
MOST_LABELS: Final = 12
ENTITY_TEXT: Final = 90  # Of the headline's 150; a longer entity stands whole in the small print.
_MOST_NAMES: Final = 10
_URL: Final = 2_000  # Slack allows a button 3,000; nobody reads more of a link.
_LINE: Final = 300  # A warning or label longer than this is cut, and the modal has it whole.


def block_id(view: ReviewView, name: str) -> str:
    """Make a block id that is new for each drawing, as Slack asks for every iteration of a message."""
    return f"stet.r{view.revision}.v{view.version}.{name}"


def all_shown(view: ReviewView) -> bool:
    """Say whether `below` and `action` show every warning, label and recipient whole."""
    texts = (*view.warnings, *(label.text for label in view.labels))
    names = (title_of(field.name) for field in (*view.draft, *view.labels))
    if any(length(visible(name)) > NAME_TEXT for name in names):
        return False
    few = len(view.warnings) <= MOST_WARNINGS and len(view.labels) <= MOST_LABELS
    return (
        few
        and all(length(visible(one.recipient or "")) <= RECIPIENT_TEXT for one in view.actions)
        and all(length(visible(text)) <= _LINE for text in texts)
    )


def action(view: ReviewView) -> list[Element]:
    """What will happen on approval: each effect with recipient and target host, and what it waits for."""
    key = "action.on_approval" if is_open(view.state) else "action.is"
    if len(view.actions) == 1:
        return action_line(view.language, key, view.actions[0])
    found = [one for one in phrase(view.language, key, what="") if one["text"]]
    for one in view.actions:
        name = outside(one.name or one.effect_type, limit=NAME_TEXT)
        found += [words("\n• "), *action_line(view.language, "action.part", one, name=name)]
        if one.after:
            after = outside(one.after, limit=NAME_TEXT)
            found += phrase(view.language, "action.after", name=after)
    return found


def below(view: ReviewView) -> list[Block]:
    """Warnings, changes, then who, when, where from, labels."""
    found: list[Block] = []
    if warnings := _warnings(view):
        found.append(
            rich(
                block_id(view, "warnings"),
                section(warnings_title(view)),
                bullets(warnings),
            )
        )
    if changes := _changes(view):
        found.append(rich(block_id(view, "changes"), *changes))
    facts = [line for line in (_voters(view), _waiting(view), _source(view), _labels(view)) if line]
    found.append(rich(block_id(view, "facts"), lines(facts)))
    return found


def warnings_title(view: ReviewView) -> list[Element]:
    """The line over the warnings; once it is decided, nobody is about to decide."""
    return phrase(view.language, "warnings.title" if is_open(view.state) else "warnings.settled")


def _warnings(view: ReviewView) -> list[list[Element]]:
    language = view.language
    found = [[outside(text, limit=_LINE)] for text in view.warnings[:MOST_WARNINGS]]
    if more := len(view.warnings) - MOST_WARNINGS:
        found += [phrase(language, "warnings.more", count=more)] if more > 0 else []
    found = [*hidden_note(everything(view), "warnings.hidden", language), *found]
    if isinstance(view.state, Pending) and view.state.note is PendingNote.NEWER_FAILED:
        found.insert(0, phrase(language, "warnings.newer_failed"))
    return [*_history(view), *found]


def everything(view: ReviewView) -> tuple[Field, ...]:
    """All of a draft and about it that people read and decide by, to look for what they would not see."""
    source, earlier, corrects = view.source, view.earlier, view.replaces
    others = [view.entity, source.url, source.requested_by, view.small.key, *view.warnings]
    others += [text for one in view.actions for text in (one.recipient, one.host, one.name, one.after)]
    others += [earlier.reason] if earlier else []
    others += [corrects.key, corrects.reason, *corrects.sent] if corrects else []  # What is undone was sent.
    return (*view.draft, *view.labels, *(Field("", other) for other in others if other))


def _history(view: ReviewView) -> list[list[Element]]:
    """What was decided or sent before for the same thing."""
    found: list[list[Element]] = []
    if (old := view.replaces) is not None:
        key, reason = outside(old.key, limit=400, code=True), outside(old.reason)
        found.append(phrase(view.language, "history.replaces", key=key, reason=reason))
        sent = outside(", ".join(old.sent), limit=_LINE, code=True)
        found.append(phrase(view.language, "history.sent" if old.sent else "history.not_sent", ids=sent))
        if old.undone:
            back = outside(", ".join(old.undone), limit=_LINE, code=True)
            found.append(phrase(view.language, "history.undone", ids=back))
    if (no := view.earlier) is not None:
        parts = {"who": person(no.by), "at": date(no.at), "reason": outside(no.reason)}
        found.append(phrase(view.language, "history.rejected", **parts))
    return found


def _changes(view: ReviewView) -> list[Element]:
    if view.previous is None:
        return []
    new = (*view.draft, *view.labels)
    drawn = draw_changes(view.previous.fields, new, language=view.language)
    title = "diff.title" if drawn else "diff.nothing"
    return [section(phrase(view.language, title, revision=view.previous.revision)), *drawn]


def _voters(view: ReviewView) -> list[Element]:
    """Who may still decide or cancel; the votes so far, while they count (later the state names them)."""
    voting, language = view.voting, view.language
    found: list[Element] = []
    if is_open(view.state) or may_cancel(view.state):
        who = people(voting.reviewers[:_MOST_NAMES]) or phrase(language, "voting.nobody")
        if more := len(voting.reviewers[_MOST_NAMES:]):
            who += phrase(language, "voting.more", count=more)
        found = phrase(language, "voting.who" if is_open(view.state) else "voting.cancel", who=who)
    if is_open(view.state) and (voting.quorum > 1 or voting.voters):
        found += [words("\n"), *_votes(view)]
    return found


def _votes(view: ReviewView) -> list[Element]:
    voting, language = view.voting, view.language
    if len(voting.voters) >= voting.quorum:  # Open all the same: of some of them Slack says that they left.
        return phrase(language, "voting.some_left", who=people(voting.voters), quorum=voting.quorum)
    found = phrase(language, "voting.count", count=len(voting.voters), quorum=voting.quorum)
    return [*found, words(": "), *people(voting.voters)] if voting.voters else found


def _waiting(view: ReviewView) -> list[Element]:
    key = "times.opened"
    if is_open(view.state):
        key = "times.waiting" if view.times.expires_at is None else "times.waiting_until"
    expires = view.times.expires_at or view.times.opened_at
    return phrase(view.language, key, opened=date(view.times.opened_at), expires=date(expires))


def _source(view: ReviewView) -> list[Element]:
    found: list[Element] = []
    if view.source.url:
        found = phrase(view.language, "source.record", link=_record(view.source))
    if view.source.requested_by:
        found += [words("\n")] if found else []
        found += phrase(
            view.language, "source.requested_by", who=outside(view.source.requested_by, limit=120)
        )
    return found


def _record(source: Source) -> Element:
    """A link with its real host, or the address as dead text."""
    url = source.url or ""
    host = linkable_host(url, source.hosts)
    return {"type": "link", "url": url, "text": host} if host else outside(url, limit=_LINE, code=True)


def linkable_host(url: str, hosts: frozenset[str]) -> str | None:
    """The host of a plain https address on one of `hosts`; None for anything that could mislead."""
    if (
        not url.isascii()
        or not url.isprintable()
        or any(char in url for char in " \\<>|\"'")
        or len(url) > _URL
    ):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    plain = parts.scheme == "https" and "@" not in parts.netloc and port in (None, 443)
    return parts.hostname if plain and parts.hostname in hosts else None


def _labels(view: ReviewView) -> list[Element]:
    found: list[Element] = []
    for label in view.labels[:MOST_LABELS]:
        found += [words(" · ")] if found else []
        found.append(outside(f"{title_of(label.name)}:", limit=NAME_TEXT + 1, bold=True))
        found += [words(" "), outside(label.text, limit=_LINE)]
    return found


def small_print(view: ReviewView) -> Block:
    """Key, revision, model, prompt, and what a rerun does."""
    language, fine = view.language, view.small
    parts = [say(language, "small.revision", revision=view.revision)]
    if fine.edited_by is not None:
        parts.append(say(language, "small.edited", who=fine.edited_by.name or fine.edited_by.id))
    if fine.model:
        parts.append(say(language, "small.model", model=clip(fine.model, 100)))
    if fine.prompt_version:
        parts.append(say(language, "small.prompt", version=fine.prompt_version[:8]))
    key = say(language, "small.key", key=clip(fine.key, 500))
    entity = (
        [say(language, "small.entity", entity=clip(view.entity, 1_000))]
        if length(visible(view.entity)) > ENTITY_TEXT
        else []
    )
    reruns = say(language, "small.repeats" if fine.repeats else "small.reruns", count=fine.repeats)
    return small(block_id(view, "small"), "\n".join([key, " · ".join(parts), *entity, reruns]))
