"""One line of the table: the limit that the same run measured, what Stet reached, and if that is enough.
Not here: measuring anything (paths) or which lines there are (__main__).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

HEADS = ("path", "limit", "Stet", "share", "target", "ok")
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Line:
    """A measured path. `reached` is None where the target is only that the figure is told."""

    path: str
    limit: str
    stet: str
    share: str
    target: str
    reached: bool | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as it is printed."""
        verdict = NOTHING if self.reached is None else ("yes" if self.reached else "NO")
        return (self.path, self.limit, self.stet, self.share, self.target, verdict)


def of_limit(path: str, limit: float, reached: float, *, percent: int) -> Line:
    """Rates a second, of which a share of the limit is asked."""
    share = reached / limit if limit else math.nan
    return Line(
        path,
        rate(limit),
        rate(reached),
        f"{share:.0%}",
        f"≥ {percent} % of the limit",
        share * 100 >= percent,
    )


def at_least(path: str, reached: float, *, target: float, limit: float | None = None) -> Line:
    """A rate a second, with a target of its own."""
    share = NOTHING if not limit else f"{reached / limit:.0%}"
    shown = NOTHING if limit is None else rate(limit)
    return Line(path, shown, rate(reached), share, f"≥ {target:,.0f}/s", reached >= target)


def at_most(path: str, reached: float, target: float, unit: str, *, limit: str = NOTHING) -> Line:
    """A size or a time that may not be exceeded."""
    return Line(path, limit, f"{reached:,.2f} {unit}", NOTHING, f"≤ {target:g} {unit}", reached <= target)


def told(path: str, stet: str) -> Line:
    """A figure that is only reported."""
    return Line(path, NOTHING, stet, NOTHING, "reported", None)


def rate(value: float) -> str:
    """A rate for people."""
    return f"{value:,.0f}/s"


def percentile(values: Sequence[float], of_hundred: float) -> float:
    """The value that so many of a hundred do not exceed (nearest rank); nan of nothing."""
    if not values:
        return math.nan
    ranked = sorted(values)
    return ranked[max(0, math.ceil(of_hundred / 100 * len(ranked)) - 1)]


def middle(values: Sequence[float]) -> float:
    """The median; nan of nothing."""
    return median(values) if values else math.nan


def as_text(lines: Sequence[Line]) -> str:
    """A table for a terminal."""
    return _drawn(lines, lambda cells, wide: "  ".join(c.ljust(w) for c, w in zip(cells, wide, strict=True)))


def as_markdown(lines: Sequence[Line]) -> str:
    """The same table for docs/speed.md."""
    rows = [HEADS, tuple("---" for _ in HEADS), *(line.cells for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _drawn(lines: Sequence[Line], draw: Callable[[Sequence[str], Sequence[int]], str]) -> str:
    rows = [HEADS, *(line.cells for line in lines)]
    wide = [max(len(row[place]) for row in rows) for place in range(len(HEADS))]
    return "\n".join(draw(row, wide).rstrip() for row in rows)
