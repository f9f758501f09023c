"""What is said above App Homes for a moment: the answer to a press there that no window could show.

Not here: drawing and publishing (home), or who says what (bot/doors).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bot.cards.notices import Notice

NOTE_SECONDS: Final = 30.0  # Time to read a line; the drawing that follows a press must not wipe it away.


@dataclass(slots=True)
class Note:
    """One notice; `is_shown`: it stands before the person."""

    notice: Notice
    until: float
    is_shown: bool = False


@dataclass(slots=True)
class Notes:
    """The notes of this process, one a person at most."""

    clock: Callable[[], float]
    _notes: dict[tuple[str, str], Note] = field(default_factory=dict)

    def write(self, team_id: str, user_id: str, notice: Notice) -> None:
        """Say something from now on; what is over goes."""
        now = self.clock()
        self._notes = {whose: note for whose, note in self._notes.items() if note.until > now}
        self._notes[team_id, user_id] = Note(notice, now + NOTE_SECONDS)

    def find(self, team_id: str, user_id: str) -> Note | None:
        """What is to be said to somebody now."""
        note = self._notes.get((team_id, user_id))
        return note if note is not None and note.until > self.clock() else None

    def forget(self, team_id: str, user_id: str) -> None:
        """They have read it."""
        self._notes.pop((team_id, user_id), None)
