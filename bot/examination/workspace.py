"""Slack as far as a token can see it: ourselves, scopes, channels, user groups, people, App Home, app token.

Not here: whether clicks arrive (click). Slack tells no token whether interactivity, the slash command and the
events are switched on: a click shows the first, and all three stand in manifest.yml.
"""

from asyncio import sleep
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

from bot.connectors.slack_message import EFFECT_TYPE
from bot.examination.finding import Finding, word_of
from bot.examination.manifest import compare_scopes
from bot.policy.people import NotAllowed, check_account
from bot.policy.terms import Kind
from bot.settings import Settings
from bot.slack.answer import SlackAnswer, SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient
from bot.slack.people import read_members, read_person

PATIENCE_SECONDS: Final = 60.0  # With many groups Slack may ask for quiet: up to that long it is kept.
_CHANNELS: Final = "CG"  # How the ids of channels begin; `escalate_to` and a target may be one.
_PEOPLE: Final = "UW"
_HOME: Final = {
    "type": "home",
    "blocks": [{"type": "section", "text": {"type": "plain_text", "text": "Stet"}}],
}
_GROUP_MENDS: Final = {
    "no_such_subteam": "there is no such user group, or it is disabled: check the id",
    "plan_upgrade_required": "user groups need a paid plan: list people instead",
}
_SOCKET_MEND: Final = "make one under Basic Information, App-Level Tokens, with connections:write"


async def examine_workspace(settings: Settings, kinds: Iterable[Kind]) -> AsyncIterator[Finding]:
    """Try everything that a token can try; after a token that is refused there is nothing more to ask."""
    if settings.slack_bot_token is not None:  # Its absence is already among the settings' problems.
        client = SlackClient(settings.slack_bot_token.get_secret_value(), base_url=settings.slack_api_url)
        await client.open()
        try:
            async for finding in _by_bot_token(client, settings, list(kinds)):
                yield finding
        finally:
            await client.close()
    if settings.slack_app_token is not None:
        yield await _app_token(settings.slack_app_token.get_secret_value(), settings.slack_api_url)


async def _by_bot_token(client: SlackClient, settings: Settings, kinds: list[Kind]) -> AsyncIterator[Finding]:
    answer = await client.auth_test()
    if not isinstance(answer, SlackOk):
        yield _not_taken("SLACK_BOT_TOKEN", answer, "copy the Bot User OAuth Token of your app again")
        return
    yield Finding(f"SLACK_BOT_TOKEN: {answer.data.get('user')} in {answer.data.get('team')}")
    yield compare_scopes(answer.scopes)
    for channel in sorted(channels_of(settings, kinds)):
        yield await _channel(client, channel)
    team = str(answer.data.get("team_id"))
    for person, why in sorted(people_of(settings, kinds).items()):
        if person.startswith("S"):
            yield await _group(client, person, why)
        else:
            yield await _person(client, person, why, team)
    for place, why in sorted(messaged(kinds).items()):
        if place[0] in _PEOPLE:
            yield await _receiver(client, place, why)
    yield await _home(client, str(answer.data.get("user_id")))


def channels_of(settings: Settings, kinds: Iterable[Kind]) -> set[str]:
    """Every channel that something is posted to."""
    listed = list(kinds)
    named = {kind.channel for kind in listed}
    named |= {kind.escalate_to for kind in listed if kind.escalate_to and kind.escalate_to[0] in _CHANNELS}
    named |= {place for place in messaged(listed) if place[0] in _CHANNELS}
    return named | ({settings.ops_channel} if settings.ops_channel else set())


def messaged(kinds: Iterable[Kind]) -> dict[str, str]:
    """Where a `slack_message` goes whatever the event says, and where that is first named."""
    named: dict[str, str] = {}
    for kind in kinds:
        for where, send in kind.all_sends:
            if send.type == EFFECT_TYPE and send.recipient is None:
                named.setdefault(send.target, f"kinds.{kind.name}.{where}.target")
    return named


def people_of(settings: Settings, kinds: Iterable[Kind]) -> dict[str, str]:
    """Every user and user group that something depends on, and where it is first named."""
    named: dict[str, str] = {}
    for kind in kinds:
        lists = {"reviewers": kind.reviewers, "qualified": kind.qualified}
        lists["escalate_to"] = (kind.escalate_to,) if kind.escalate_to else ()
        for key, listed in lists.items():
            for person in (each for each in listed if each[0] not in _CHANNELS):
                named.setdefault(person, f"kinds.{kind.name}.{key}")
    for variable, listed in (("ADMIN_USERS", settings.admin_users), ("KILL_USERS", settings.kill_users)):
        for person in listed:
            named.setdefault(person, variable)
    return named


async def _channel(client: SlackClient, channel: str) -> Finding:
    answer = await _patiently(lambda: client.conversation(channel))
    what = f"channel {channel}"
    if not isinstance(answer, SlackOk):
        return Finding(what, f"{word_of(answer)}: check the id, and invite the bot")
    facts: Any = answer.data.get("channel", {})
    if facts.get("is_archived"):
        return Finding(what, "it is archived: unarchive it or name another")
    if not facts.get("is_member"):
        return Finding(what, "the bot is not in it: /invite it there")
    if facts.get("is_ext_shared"):
        return Finding(what, "it is shared with another company: name one of your own")
    return Finding(what)


async def _group(client: SlackClient, group: str, why: str) -> Finding:
    answer = await _patiently(lambda: client.group_members(group))
    what = f"user group {group} ({why})"
    if not isinstance(answer, SlackOk):
        word = word_of(answer)
        return Finding(what, _GROUP_MENDS.get(word, f"{word}: nobody in it can be known, so nobody may"))
    members = read_members(answer.data)
    if members is None:
        return Finding(what, "Slack's answer cannot be read: list people instead")
    if not members:
        return Finding(what, "nobody is in it: add people, or name another")
    return Finding(f"{what}: {len(members)} people")


async def _person(client: SlackClient, user: str, why: str, team: str) -> Finding:
    answer = await _patiently(lambda: client.user_info(user))
    what = f"user {user} ({why})"
    if not isinstance(answer, SlackOk):
        return Finding(what, f"{word_of(answer)}: check the id")
    person = read_person(team, user, answer.data)
    if person is None:
        return Finding(what, "not of this workspace, or Slack does not say enough: check the id")
    barred = check_account(person, home_team=team)
    if isinstance(barred, NotAllowed):
        return Finding(what, f"{barred.reason}: such an account may never decide, name somebody else")
    return Finding(what)


async def _receiver(client: SlackClient, user: str, why: str) -> Finding:
    """Try an account that only gets messages: a guest will do for that."""
    answer = await _patiently(lambda: client.user_info(user))
    what = f"user {user} ({why})"
    if not isinstance(answer, SlackOk):
        return Finding(what, f"{word_of(answer)}: check the id")
    account: Any = answer.data.get("user", {})
    if account.get("deleted"):
        return Finding(what, "deactivated: name somebody else")
    return Finding(what)


async def _home(client: SlackClient, ourselves: str) -> Finding:
    """Our own Home, which nobody opens. Slack may not draw it for a bot, and then it tells nothing."""
    answer = await _patiently(lambda: client.publish_home(ourselves, _HOME))
    if isinstance(answer, SlackRefused) and answer.error == "not_enabled":
        return Finding("App Home", "it is off: switch on the Home Tab under App Home")
    if isinstance(answer, SlackOk):
        return Finding("App Home")
    return Finding(f"App Home: cannot be tried from here ({word_of(answer)}); open it in Slack to see")


async def _app_token(token: str, base_url: str) -> Finding:
    """Ask for the address of a line, and open none: it could be handed the click of somebody else."""
    client = SlackClient(token, base_url=base_url)
    answer = await _patiently(client.open_socket)
    if isinstance(answer, SlackOk):
        return Finding("SLACK_APP_TOKEN: Socket Mode; Slack sends nothing by HTTP then")
    return _not_taken("SLACK_APP_TOKEN", answer, _SOCKET_MEND)


def _not_taken(token: str, answer: SlackAnswer, mend: str) -> Finding:
    """A token that Slack refused has that mend; where Slack does not answer, it may be right."""
    away = isinstance(answer, SlackNotDelivered | SlackUnknown)
    return Finding(
        token, f"{word_of(answer)}: {'check the network, and SLACK_API_URL if it is set' if away else mend}"
    )


async def _patiently(ask: Callable[[], Awaitable[SlackAnswer]]) -> SlackAnswer:
    """Ask, and once more after the quiet that Slack may want."""
    answer = await ask()
    if isinstance(answer, SlackLimited) and answer.retry_after_seconds <= PATIENCE_SECONDS:
        await sleep(answer.retry_after_seconds)
        answer = await ask()
    return answer
