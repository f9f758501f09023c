"""Which app and workspace our token belongs to, asked until Slack has answered once.

Nobody may decide anything before that is known: whoever clicks is compared with the home team.
"""

from dataclasses import dataclass
from typing import Final

from bot.slack.answer import SlackOk, SlackRefused
from bot.slack.client import SlackClient

# What Slack says of a token that will never work (docs, auth.test).
HOPELESS: Final = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
)


@dataclass(frozen=True, slots=True)
class Ourselves:
    """Who we are in Slack."""

    team_id: str
    bot_user_id: str
    bot_id: str | None
    enterprise_id: str | None = None
    app_id: str | None = None


class Identity:
    """Holds the answer of auth.test once there is one."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self.ourselves: Ourselves | None = None

    def home_team(self) -> str:
        """The workspace of our app; empty until known, and then nobody is at home."""
        return self.ourselves.team_id if self.ourselves else ""

    def known(self) -> bool:
        """Whether Slack has told us who we are."""
        return self.ourselves is not None

    async def ask(self) -> str | None:
        """Ask once; give Slack's word if it says that this token will never work, else None."""
        answer = await self._client.auth_test()
        if isinstance(answer, SlackRefused):
            return answer.error if answer.error in HOPELESS else None
        if isinstance(answer, SlackOk):
            self.ourselves = _read(answer)
        return None

    async def run_once(self) -> int:
        """Ask if it is not known yet; a background step, so that Slack may be away while we start."""
        if self.ourselves is None:
            await self.ask()
        return 0


def _read(answer: SlackOk) -> Ourselves | None:
    team, user, bot = (answer.data.get(name) for name in ("team_id", "user_id", "bot_id"))
    if not isinstance(team, str) or not isinstance(user, str):
        return None
    enterprise, app = (answer.data.get(name) for name in ("enterprise_id", "app_id"))
    return Ourselves(
        team_id=team,
        bot_user_id=user,
        bot_id=bot if isinstance(bot, str) else None,
        enterprise_id=enterprise if isinstance(enterprise, str) else None,
        app_id=app if isinstance(app, str) else None,
    )
