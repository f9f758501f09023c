"""The doctor: each setting tried on the real thing, one line each: what is wrong and how to mend it.

Not here: how a setting is read (settings) or what `serve` refuses to start on (wiring).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from bot.connectors.reach import Blocked, Reach
from bot.drafting.faults import DraftFault
from bot.drafting.model import Endpoint, ModelClient
from bot.policy.kinds import Policy, PolicyError, load_policy
from bot.registry import find_effect_types
from bot.settings import SettingProblem, Settings
from bot.slack.answer import SlackOk, SlackRefused
from bot.slack.client import SlackClient
from store.database import Database
from store.errors import DatabaseAway, SchemaMismatch
from store.health import OLDEST_SERVER, server_version
from store.migrate import check
from store.reached import database_of

MODEL_SECONDS = 10.0  # An endpoint that takes longer to list its models will not draft in time either.


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's: `mend` is empty where all is well."""

    what: str
    mend: str = ""

    def __str__(self) -> str:
        """One line for people."""
        return f"wrong  {self.what}: {self.mend}" if self.mend else f"ok     {self.what}"


async def examine(settings: Settings, problems: Sequence[SettingProblem], say: Callable[[str], None]) -> int:
    """Try everything, say a line each as it is known, and give 1 if anything is wrong."""
    wrong = len(problems)
    for problem in problems:
        say(f"wrong  {problem}")
    async for finding in _findings(settings):
        wrong += bool(finding.mend)
        say(str(finding))
    say("all is well" if not wrong else f"{wrong} things to mend")
    return 1 if wrong else 0


async def _findings(settings: Settings) -> AsyncIterator[Finding]:
    yield await _database(settings)
    policy = _policy(settings)
    yield policy if isinstance(policy, Finding) else Finding(f"POLICY_FILE: {len(policy.kinds)} kinds")
    async for finding in _slack(settings, policy if isinstance(policy, Policy) else None):
        yield finding
    yield await _model(settings)
    if isinstance(policy, Policy):
        for finding in _targets(settings, policy):
            yield finding
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
    except DatabaseAway:
        return Finding("DATABASE_URL", "cannot take the role stet_app: run migrate, or GRANT stet_app to it")
    finally:
        await db.close()
    if version < OLDEST_SERVER:
        return Finding("DATABASE_URL", f"PostgreSQL {version} is too old: use {OLDEST_SERVER} or newer")
    return Finding(f"DATABASE_URL: PostgreSQL {version}" + (" (embedded)" if embedded else ""))


def _policy(settings: Settings) -> Policy | Finding:
    try:
        return load_policy(settings.policy_file.read_text(encoding="utf-8"), effect_types=find_effect_types())
    except OSError as fault:
        return Finding("POLICY_FILE", f"cannot be read ({fault.strerror}): name the file with your kinds")
    except PolicyError as fault:
        return Finding("POLICY_FILE", "; ".join(str(fault).splitlines()))


async def _slack(settings: Settings, policy: Policy | None) -> AsyncIterator[Finding]:
    if settings.slack_bot_token is None:
        return  # Its absence is already among the settings' problems.
    client = SlackClient(settings.slack_bot_token.get_secret_value(), base_url=settings.slack_api_url)
    try:
        answer = await client.auth_test()
        if not isinstance(answer, SlackOk):
            word = answer.error if isinstance(answer, SlackRefused) else "Slack does not answer"
            yield Finding("SLACK_BOT_TOKEN", f"{word}: copy the Bot User OAuth Token of your app again")
            return
        yield Finding(f"SLACK_BOT_TOKEN: {answer.data.get('user')} in {answer.data.get('team')}")
        for channel in sorted(_channels(settings, policy)):
            yield await _channel(client, channel)
    finally:
        await client.close()


def _channels(settings: Settings, policy: Policy | None) -> set[str]:
    named = {kind.channel for kind in policy.kinds.values()} if policy else set()
    return named | ({settings.ops_channel} if settings.ops_channel else set())


async def _channel(client: SlackClient, channel: str) -> Finding:
    answer = await client.conversation(channel)
    if not isinstance(answer, SlackOk):
        word = answer.error if isinstance(answer, SlackRefused) else "Slack does not answer"
        return Finding(f"channel {channel}", f"{word}: check the id, and invite the bot")
    facts = answer.data.get("channel", {})
    if not facts.get("is_member"):
        return Finding(f"channel {channel}", "the bot is not in it: /invite it there")
    if facts.get("is_archived"):
        return Finding(f"channel {channel}", "it is archived: unarchive it or name another")
    if facts.get("is_ext_shared"):
        return Finding(f"channel {channel}", "it is shared with another company: name one of your own")
    return Finding(f"channel {channel}")


async def _model(settings: Settings) -> Finding:
    if settings.openai_api_key is None or settings.openai_model is None:
        return Finding("OPENAI_API_KEY: not set; every event must bring its draft")
    base = {"base_url": settings.openai_base_url} if settings.openai_base_url else {}
    endpoint = Endpoint(settings.openai_api_key.get_secret_value(), settings.openai_model, **base)
    async with ModelClient(endpoint) as model:
        try:
            names = await model.list_models(timeout_seconds=MODEL_SECONDS)
        except DraftFault as fault:
            return Finding(
                "OPENAI_BASE_URL", f"{fault.word} ({fault.detail}): check the address and OPENAI_API_KEY"
            )
    if settings.openai_model not in names:
        return Finding("OPENAI_MODEL", f"the endpoint does not list {settings.openai_model}")
    return Finding(f"OPENAI_MODEL: {settings.openai_model}")


def _targets(settings: Settings, policy: Policy) -> list[Finding]:
    reach = Reach.parse(settings.effect_allowed_hosts)
    found = []
    for kind in policy.kinds.values():
        if kind.effect.type != "http":
            continue
        blocked = reach.check_url(kind.effect.target)
        if isinstance(blocked, Blocked):
            mend = f"EFFECT_ALLOWED_HOSTS does not let it through ({blocked.reason}): add its host"
            found.append(Finding(f"kinds.{kind.name}.effect.target", mend))
        else:
            found.append(Finding(f"kinds.{kind.name}.effect.target: {blocked.host}"))
    return found
