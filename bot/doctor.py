"""The doctor: each setting tried on the real thing, one line each: what is wrong and how to mend it.

Not here: Slack's side of it (examination), how a setting is read (settings), what stops `serve` (wiring).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime

from bot.connectors.connector import Connector, Kit
from bot.connectors.reach import Blocked, Reach, Target
from bot.drafting.faults import DraftFault
from bot.drafting.model import NO_KEY, Endpoint, ModelClient
from bot.examination.click import examine_click
from bot.examination.finding import Finding
from bot.examination.look_ups import examine_look_ups
from bot.examination.mail import examine_mail
from bot.examination.named import find_named_problems
from bot.examination.workspace import examine_workspace
from bot.policy.kinds import Policy, PolicyError, load_policy
from bot.policy.signatures import read_secret
from bot.policy.terms import Kind
from bot.registry import build_registry, find_addresses, find_effect_types, find_gate_modes
from bot.settings import SettingProblem, Settings
from bot.variables import Variables
from store.database import Database
from store.errors import DatabaseAway, SchemaMismatch
from store.health import OLDEST_SERVER, server_clock, server_version
from store.migrate import check
from store.reached import database_of

MODEL_SECONDS = 10.0  # An endpoint that takes longer to list its models will not draft in time either.
WRONG_CLOCK_SECONDS = 60  # Slack and Standard Webhooks take a signature for five minutes.


async def examine(
    settings: Settings,
    problems: Sequence[SettingProblem],
    say: Callable[[str], None],
    *,
    click_seconds: float = 0.0,
) -> int:
    """Try everything, say a line each as it is known, and give 1 if anything is wrong.

    With `click_seconds` a test card is posted to OPS_CHANNEL, and somebody has so long to press it.
    """
    wrong = len(problems)
    for problem in problems:
        say(f"wrong  {problem}")
    async for finding in _findings(settings, say, click_seconds):
        wrong += bool(finding.mend)
        say(str(finding))
    say("all is well" if not wrong else f"{wrong} things to mend")
    return 1 if wrong else 0


async def _findings(
    settings: Settings, say: Callable[[str], None], click_seconds: float
) -> AsyncIterator[Finding]:
    yield await _database(settings)
    policy = _policy(settings)
    yield policy if isinstance(policy, Finding) else Finding(f"POLICY_FILE: {', '.join(policy.kinds)}")
    kinds = policy.kinds.values() if isinstance(policy, Policy) else ()
    async for finding in examine_workspace(settings, kinds):
        yield finding
    if click_seconds:
        async for finding in examine_click(settings, say, seconds=click_seconds):
            yield finding
    yield await _model(settings, [kind for kind in kinds if kind.prompt is not None])
    mail = await examine_mail(settings, policy if isinstance(policy, Policy) else None)
    if mail is not None:
        yield mail
    if isinstance(policy, Policy):
        for finding in _targets(settings, policy):
            yield finding
        async for finding in examine_look_ups(_connectors(settings), policy):
            yield finding
        for wrong in find_named_problems(policy, Variables.read()):
            yield Finding(wrong.variable, wrong.mend)
    if not settings.ai_actions_enabled:
        yield Finding("AI_ACTIONS_ENABLED is not true: drafts and decisions work, nothing leaves")


async def _database(settings: Settings) -> Finding:
    try:
        with database_of(settings.database_url, settings.data_dir) as dsn:
            if settings.database_url is not None:
                await asyncio.to_thread(check, dsn)
            return await _role(dsn, embedded=settings.database_url is None)
    except SchemaMismatch as fault:
        return Finding("DATABASE_URL", str(fault))
    except (DatabaseAway, OSError) as fault:
        return Finding("DATABASE_URL", f"cannot be used: {fault}")


async def _role(dsn: str, *, embedded: bool) -> Finding:
    db = Database(dsn, role=None if embedded else "stet_app", max_size=1)
    await db.open()
    try:
        async with db.connection() as conn:
            version = await server_version(conn)
            ahead_seconds = round((datetime.now(UTC) - await server_clock(conn)).total_seconds())
    except DatabaseAway:
        return Finding("DATABASE_URL", "cannot take the role stet_app: run migrate, or GRANT stet_app to it")
    finally:
        await db.close()
    if version < OLDEST_SERVER:
        return Finding("DATABASE_URL", f"PostgreSQL {version} is too old: use {OLDEST_SERVER} or newer")
    if abs(ahead_seconds) > WRONG_CLOCK_SECONDS:
        wrong = f"{abs(ahead_seconds)} s {'ahead of' if ahead_seconds > 0 else 'behind'} the database's"
        return Finding("clock", f"this host's is {wrong}: set both by NTP, or Slack's signatures are refused")
    return Finding(f"DATABASE_URL: PostgreSQL {version}" + (" (embedded)" if embedded else ""))


def _policy(settings: Settings) -> Policy | Finding:
    try:
        text = settings.policy_file.read_text(encoding="utf-8")
        return load_policy(text, effect_types=find_effect_types(), gates=find_gate_modes())
    except OSError as fault:
        return Finding("POLICY_FILE", f"cannot be read ({fault.strerror}): name the file with your kinds")
    except UnicodeDecodeError:
        return Finding("POLICY_FILE", "is not UTF-8 text: save it as UTF-8")
    except PolicyError as fault:
        return Finding("POLICY_FILE", "; ".join(str(fault).splitlines()))


async def _model(settings: Settings, drafting: Sequence[Kind]) -> Finding:
    """Try the endpoint; `drafting`: the kinds that have a prompt."""
    unset = _unset(settings, drafting)
    if unset is not None and drafting:
        kinds = ", ".join(kind.name for kind in drafting)
        return Finding(unset, f"not set, so nothing can be drafted for {kinds}: set it, or drop the prompt")
    wanted = {kind.model or settings.openai_model or "" for kind in drafting} or {settings.openai_model or ""}
    if unset is not None or "" in wanted:
        return Finding(f"{unset or 'OPENAI_MODEL'}: not set; every event must bring its draft")
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else NO_KEY
    base = {"base_url": settings.openai_base_url} if settings.openai_base_url else {}
    async with ModelClient(Endpoint(key, min(wanted), **base)) as model:
        try:
            names = await model.list_models(timeout_seconds=MODEL_SECONDS)
        except DraftFault as fault:
            return Finding(
                "OPENAI_BASE_URL", f"{fault.word} ({fault.detail}): check the address and OPENAI_API_KEY"
            )
    if unlisted := sorted(wanted.difference(names)):
        return Finding("OPENAI_MODEL", f"the endpoint does not list {', '.join(unlisted)}")
    return Finding(f"OPENAI_MODEL: {', '.join(sorted(wanted))}")


def _unset(settings: Settings, drafting: Sequence[Kind]) -> str | None:
    """The setting without which a model cannot be asked; an endpoint of one's own may need no key."""
    if settings.openai_api_key is None and settings.openai_base_url is None:
        return "OPENAI_API_KEY"
    nameless = settings.openai_model is None and any(kind.model is None for kind in drafting)
    return "OPENAI_MODEL" if nameless else None


def _targets(settings: Settings, policy: Policy) -> list[Finding]:
    reach = Reach.parse(settings.effect_allowed_hosts)
    return [
        _address(f"kinds.{kind.name}.{where}.{key}", reach.check_url(url))
        for kind in policy.kinds.values()
        for where, effect in kind.all_sends
        for key, url in find_addresses(effect).items()
    ]


def _connectors(settings: Settings) -> Mapping[str, Connector]:
    signing = settings.effect_signing_secret
    kit = Kit(
        reach=Reach.parse(settings.effect_allowed_hosts),
        signing_secret=read_secret(signing.get_secret_value()) if signing else None,
        variables=Variables.read(),
    )
    return build_registry(kit).connectors


def _address(what: str, read: Target | Blocked) -> Finding:
    if isinstance(read, Blocked):
        return Finding(what, f"EFFECT_ALLOWED_HOSTS does not let it through ({read.reason}): add its host")
    return Finding(f"{what}: {read.host}")
