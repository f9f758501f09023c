"""The commands: `python -m bot COMMAND`.

Not here: what they do (wiring, doctor, store/migrate, policy/kinds).
"""

import argparse
import asyncio
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from bot import doctor
from bot.examination.click import CLICK_SECONDS
from bot.policy.effective import describe
from bot.policy.kinds import Policy, PolicyError, load_policy
from bot.records import show_chain, verify_record
from bot.registry import find_effect_types, find_gate_modes, find_gates
from bot.replay import replay_policy, report
from bot.settings import Settings, SettingsError
from bot.wiring import CannotStart, serve
from store.errors import StetError
from store.migrate import migrate
from store.reached import database_of

MOST_DAYS = 3650  # Ten years, as long as any duration of the policy.


def _serve(_: argparse.Namespace) -> int:
    settings = Settings.load(purpose="serve")
    uvloop.run(serve(settings))
    return 0


def _demo(_: argparse.Namespace) -> int:
    # By name: nothing imports the demo, and a deployment may leave it out.
    runpy.run_module("bot.demo.run", run_name="__main__")
    return 0


def _migrate(_: argparse.Namespace) -> int:
    settings = Settings.load(purpose="database")
    with database_of(settings.migrate_database_url or settings.database_url, settings.data_dir) as dsn:
        applied = migrate(dsn)
    for name in applied:
        print(name)
    print(f"{len(applied)} migrations applied; the schema is up to date")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    settings, problems = Settings.read(purpose="doctor")
    seconds = CLICK_SECONDS if arguments.click else 0.0
    return asyncio.run(doctor.examine(settings, problems, print, click_seconds=seconds))


def _audit(arguments: argparse.Namespace) -> int:
    settings = Settings.load(purpose="database")
    with database_of(settings.database_url, settings.data_dir) as dsn:
        if arguments.what == "verify":
            return asyncio.run(verify_record(dsn, print))
        return asyncio.run(show_chain(dsn, arguments.key, print))


def _policy(arguments: argparse.Namespace) -> int:
    try:
        text = arguments.file.read_text(encoding="utf-8")
    except UnicodeDecodeError as fault:
        raise CannotStart(f"{arguments.file} is not UTF-8: save it as such") from fault
    policy = load_policy(text, effect_types=find_effect_types(), gates=find_gate_modes())
    if arguments.what == "replay":
        return _replay(policy, arguments.days)
    print("\n\n".join(describe(kind) for kind in policy.kinds.values()))
    return 0


def _replay(policy: Policy, days: int) -> int:
    settings = Settings.load(purpose="database")
    gates = {name: module.judge for name, module in find_gates().items()}
    with database_of(settings.database_url, settings.data_dir) as dsn:
        outcomes = asyncio.run(replay_policy(dsn, policy, gates, days))
    report(outcomes, days, print)
    return 0


def _days(text: str) -> int:
    days = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_DAYS)) else 0
    if not 1 <= days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"must be a whole number of days from 1 to {MOST_DAYS}")
    return days


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bot", description="Stet, the approval bot.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], says: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=says, description=says)
        command.set_defaults(run=run)
        return command

    add("serve", _serve, "run everything: HTTP, Slack, drafting, cards, outbox, schedule")
    add("demo", _demo, "serve with stand-ins for Slack, the model and the outside, and a page to click on")
    add("migrate", _migrate, "bring the database to the newest schema")
    checked = add("doctor", _doctor, "check every setting against the real thing")
    checked.add_argument(
        "--click", action="store_true", help="post a test card to OPS_CHANNEL and await a click"
    )
    audit = add("audit", _audit, "check the record, or print the history of one key")
    what = audit.add_subparsers(required=True, dest="what", metavar="verify|show")
    what.add_parser("verify", help="check every chain of the record")
    what.add_parser("show", help="print the history of one key").add_argument("key", metavar="KEY")
    policy = add("policy", _policy, "validate a policy file, or try it on past decisions")
    how = policy.add_subparsers(required=True, dest="what", metavar="check|replay")
    check = how.add_parser("check", help="validate a file and print the effective policy of each kind")
    check.add_argument("file", type=Path, metavar="FILE")
    replay = how.add_parser("replay", help="say what a file would have done to what people decided")
    replay.add_argument("file", type=Path, metavar="FILE")
    replay.add_argument("--days", type=_days, default=30, metavar="N", help="how far back; 30 if left out")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; give the exit code. What is wrong is said in one sentence, never as a trace."""
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (SettingsError, PolicyError, StetError, CannotStart, OSError) as wrong:
        print(wrong, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
