"""Draws the states and moves of store/states: `python -m store.chart` writes docs/states.md.

Not here: the moves themselves (states) or the trigger that holds everybody to them (sql/migrations).
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from store.states import MOVES, DraftStatus, EffectState, Move, RunState

TARGET = Path(__file__).resolve().parent.parent / "docs" / "states.md"

_HEAD = """\
# States

Written by `make docs` from `store/states.py`; a trigger in the database refuses every other move.
"""

# Each thing, where it stands, its states, and what is said above its chart.
_THINGS = (
    ("run", "workflow_runs.state", tuple(RunState), "The work for one event."),
    ("draft", "drafts.status", tuple(DraftStatus), "The proposal that people decide on."),
    ("effect", "effect_outbox.state", tuple(EffectState), "One thing to do in the outside world."),
)


def draw(moves: Sequence[Move] = MOVES) -> str:
    """Give the page: a chart and a table for runs, drafts and effects."""
    parts = [_HEAD]
    for thing, column, states, says in _THINGS:
        own = [move for move in moves if move.thing == thing]
        parts.append(f"## {thing.capitalize()}\n\n{says} Column: `{column}`.\n")
        parts += [_chart(own), _table(own, states)]
    return "\n".join(parts)


def _chart(moves: Sequence[Move]) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    before = {move.before for move in moves}
    first = moves[0].before
    lines.append(f"    [*] --> {first}")
    lines += [f"    {move.before} --> {move.after}" for move in moves]
    ends = sorted({move.after for move in moves} - before)
    lines += [f"    {state} --> [*]" for state in ends]
    return "\n".join([*lines, "```", ""])


def _table(moves: Sequence[Move], states: Sequence[str]) -> str:
    before = {move.before for move in moves}
    lines = ["| from | to | when |", "| --- | --- | --- |"]
    lines += [f"| `{move.before}` | `{move.after}` | {move.why} |" for move in moves]
    final = ", ".join(f"`{state}`" for state in states if state not in before)
    return "\n".join([*lines, "", f"Final: {final}.", ""])


def main() -> int:
    """Write docs/states.md."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
