"""`python -m bot serve` for the bench: the same wiring, without Slack's pace or with a profile if asked for.
Not here: any behaviour. Run as `python -m tests.bench.serve`; the settings come from the environment.
"""

import cProfile
import os

import uvloop

from bot import wiring
from bot.settings import Settings
from bot.slack import pace


def _unpaced() -> None:
    """Let cards be posted as fast as they are drawn: a bench has no hour to wait for Slack's limits."""
    for method in pace.LIMITS:
        pace.LIMITS[method] = (pace.Limit(per_minute=10**9, burst=10**6),)


def main() -> None:
    """Serve until SIGTERM."""
    if os.environ.get("BENCH_UNPACED"):
        _unpaced()
    settings = Settings.load(purpose="serve")
    profile = cProfile.Profile() if "BENCH_PROFILE" in os.environ else None
    if profile is not None:
        profile.enable()
    uvloop.run(wiring.serve(settings, ready=lambda port: print(port, flush=True)))
    if profile is not None:
        profile.disable()
        profile.dump_stats(os.environ["BENCH_PROFILE"])


if __name__ == "__main__":
    main()
