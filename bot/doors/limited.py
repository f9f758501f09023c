"""What limits hold back, for /stet status and /metrics: targets that rest, and how much of each cap is used.

Not here: the other figures (health), the words (bot/cards/answers), or holding back (bot/flow/guarding).
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from bot.cards.answers import CapUse, Keeping, RestingTarget
from store import limits, targets
from store.database import Database
from store.limits import LimitsRow, UsedRow

_NONE: Final = Decimal(0)


async def read_keeping(db: Database) -> Keeping:
    """Read both; the cost grows with what limited kinds let out today, not with what waits."""
    async with db.connection() as conn:
        resting = await targets.list_resting_targets(conn)
        capped = await limits.list_limits(conn)
        used = await limits.measure_kinds(conn, [one.kind for one in capped]) if capped else {}
    return Keeping(
        tuple(RestingTarget(one.kind, one.effect_type, one.target, one.rests_until) for one in resting),
        tuple(use for one in capped if one.kind in used for use in _uses(one, used[one.kind])),
    )


def _uses(one: LimitsRow, used: UsedRow) -> Iterator[CapUse]:
    found = (
        ("cap_hour", one.cap_hour, used.used_hour),
        ("cap_day", one.cap_day, used.used_day),
        ("cap_value_day", one.cap_value_day, used.used_value),
    )
    for cap, most, n in found:
        if most is not None:
            until = one.full_until if one.full_why == cap and one.is_full else None
            yield CapUse(one.kind, cap, Decimal(n or _NONE), Decimal(most), until)


async def figures(db: Database) -> list[Metric]:
    """Give the same as metrics."""
    keeping = await read_keeping(db)
    resting = GaugeMetricFamily(
        "stet_target_resting", "Targets that are left in peace.", labels=("kind", "type", "target")
    )
    used = GaugeMetricFamily("stet_cap_used", "What is used of a cap in its window.", labels=("kind", "cap"))
    most = GaugeMetricFamily("stet_cap", "The caps of the policy.", labels=("kind", "cap"))
    for target in keeping.resting:
        resting.add_metric((target.kind, target.effect_type, target.target), 1)
    for one in keeping.caps:
        used.add_metric((one.kind, one.cap), float(one.used))
        most.add_metric((one.kind, one.cap), float(one.most))
    return [resting, used, most]
