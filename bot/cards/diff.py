"""The word difference of two texts: what stayed, what is gone, what is new, within a bounded amount of work.

How it is drawn is in `draft`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

# Scripts written without spaces (Thai, kana, Chinese characters): each character is a word.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# A run of spaces, one unspaced character, a word, or one sign.
_TOKEN = re.compile(rf"\s+|[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")

# Myers' walk does at most about MOST_EDITS squared steps: 160,000 is some 50 ms. A text that differs in more
# words than this is a rewrite, and nobody reads such a diff word by word.
MOST_EDITS = 400


class Turn(StrEnum):
    """What became of a piece of text."""

    SAME = "same"
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text with one fate."""

    turn: Turn
    text: str


def word_diff(old: str, new: str) -> tuple[Piece, ...] | None:
    """How `old` became `new`; None when so much differs that the two are better read apart.

    Leaving out the pieces that are new gives `old`, leaving out those gone gives `new`.
    """
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    head = _shared_head(before, after)
    tail = _shared_head(before[head:][::-1], after[head:][::-1])
    moves = _walk(before[head : len(before) - tail], after[head : len(after) - tail])
    if moves is None:
        return None
    same_head, same_tail = "".join(before[:head]), "".join(before[len(before) - tail :])
    pieces = [Piece(Turn.SAME, same_head), *moves, Piece(Turn.SAME, same_tail)]
    return tuple(_joined(_bridged(_joined(pieces))))


def _shared_head(a: list[str], b: list[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _walk(a: list[str], b: list[str]) -> list[Piece] | None:
    """Myers' shortest edit script (An O(ND) Difference Algorithm, 1986), given up past MOST_EDITS edits."""
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), MOST_EDITS) + 1):
        trail.append(dict(furthest))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            furthest[k] = x
            if x >= len(a) and x - k >= len(b):
                return _retraced(a, b, trail)
    return None


def _retraced(a: list[str], b: list[str], trail: list[dict[int, int]]) -> list[Piece]:
    x, y = len(a), len(b)
    found: list[Piece] = []
    for edits in range(len(trail) - 1, -1, -1):
        furthest, k = trail[edits], x - y
        down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
        from_k = k + 1 if down else k - 1
        from_x = furthest[from_k] if edits else 0
        from_y = from_x - from_k if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            found.append(Piece(Turn.SAME, a[x]))
        if edits:
            found.append(Piece(Turn.NEW, b[from_y]) if down else Piece(Turn.GONE, a[from_x]))
        x, y = from_x, from_y
    return found[::-1]


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """One piece for each stretch; between two that stayed, what is gone stands before what is new."""
    joined: list[Piece] = []
    for stayed, group in groupby(pieces, key=lambda piece: piece.turn is Turn.SAME):
        stretch = list(group)
        for turn in (Turn.SAME,) if stayed else (Turn.GONE, Turn.NEW):
            text = "".join(piece.text for piece in stretch if piece.turn is turn)
            if text:
                joined.append(Piece(turn, text))
    return joined


def _bridged(pieces: list[Piece]) -> list[Piece]:
    """A lone space between two changes reads better as part of both."""
    bridged: list[Piece] = []
    for i, piece in enumerate(pieces):
        inside = 0 < i < len(pieces) - 1
        if piece.turn is Turn.SAME and inside and piece.text.isspace() and "\n" not in piece.text:
            bridged += [Piece(Turn.GONE, piece.text), Piece(Turn.NEW, piece.text)]
        else:
            bridged.append(piece)
    return bridged
