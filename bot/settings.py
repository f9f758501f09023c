"""The settings: read once from the environment or `.env`, checked, and frozen.
Not here: how one value is read (environment), what policy.toml says (policy/kinds), real checks (doctor).
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from bot import environment as env
from bot.policy.signatures import NamedSecret

ENV_FILE: Final = Path(".env")
Purpose = Literal["serve", "database", "doctor"]
# What a command that only touches the database reads: a broken Slack token must not stop a migration.
DATABASE_ONLY: Final = frozenset(
    {"DATABASE_URL", "MIGRATE_DATABASE_URL", "DATA_DIR", "LOG_LEVEL", "LOG_FORMAT", str(ENV_FILE)}
)

Secret = Annotated[SecretStr, BeforeValidator(env.read_secret_text)]
DatabaseUrl = Annotated[SecretStr, BeforeValidator(env.read_database_url)]
WebAddress = Annotated[str, BeforeValidator(env.read_web_address)]
Secrets = Annotated[
    tuple[NamedSecret, ...], Field(repr=False, exclude=True)
]  # out of dumps too: they are bytes
People = Annotated[tuple[str, ...], BeforeValidator(env.read_slack_people)]
Word = Annotated[str, BeforeValidator(str.strip)]
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One wrong or missing setting: which, and what is wrong with it and how to mend it. Never its value."""

    variable: str
    mend: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.variable} {self.mend}"


class SettingsError(Exception):
    """Settings are wrong or missing; the message has one line each, and so has `problems`."""

    def __init__(self, problems: tuple[SettingProblem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class Settings(BaseModel):
    """Everything the environment can say, one field a variable of the same name (SPEC section 2)."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=str.upper, hide_input_in_errors=True
    )

    database_url: DatabaseUrl | None = None  # None: an embedded server under data_dir
    migrate_database_url: DatabaseUrl | None = None
    data_dir: Path = Path("./data")
    host: Annotated[str, BeforeValidator(env.read_host)] = "127.0.0.1"
    port: Annotated[int, BeforeValidator(env.read_port)] = 3000
    public_url: WebAddress = ""

    slack_bot_token: Annotated[SecretStr, BeforeValidator(env.read_bot_token)] | None = None
    slack_signing_secret: Secret | None = None
    slack_app_token: Annotated[SecretStr, BeforeValidator(env.read_app_token)] | None = None
    slack_api_url: Annotated[str, BeforeValidator(env.read_slack_api)] = "https://slack.com/api/"

    openai_api_key: Secret | None = None
    openai_base_url: WebAddress | None = None
    openai_model: Word | None = None

    intake_tokens: Annotated[Secrets, BeforeValidator(env.read_tokens)] = ()
    intake_signing_secrets: Annotated[Secrets, BeforeValidator(env.read_signing_secrets)] = ()
    effect_signing_secret: Annotated[SecretStr, BeforeValidator(env.read_signing_secret)] | None = None
    effect_allowed_hosts: Annotated[str, BeforeValidator(env.read_reachable)] = ""
    ai_actions_enabled: Annotated[bool, BeforeValidator(env.read_switch)] = False
    policy_file: Path = Path("./policy.toml")

    admin_users: People = ()
    kill_users: People = ()
    ops_channel: Annotated[str, BeforeValidator(env.read_slack_channel)] | None = None

    smtp_url: Annotated[env.MailServer | None, BeforeValidator(env.read_mail_server), Field(exclude=True)] = (
        None
    )
    mail_from: Annotated[str, BeforeValidator(env.read_sender)] | None = None

    language: Annotated[Literal["en", "zh-CN"], BeforeValidator(env.read_language)] = "en"
    log_level: Annotated[Level, BeforeValidator(env.read_level)] = "INFO"
    log_format: Annotated[Literal["json", "text"], BeforeValidator(env.read_format)] = "json"

    @classmethod
    def load(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        purpose: Purpose = "serve",
        env_file: Path = ENV_FILE,
    ) -> Self:
        """Read the settings, those of `environ` (the process's own if None) over those in `.env`.

        Raises SettingsError with every problem that matters for the purpose: `serve` also misses what it
        needs, `database` overlooks what has nothing to do with a database.
        """
        settings, problems = cls.read(environ, purpose=purpose, env_file=env_file)
        if problems:
            raise SettingsError(problems)
        return settings

    @classmethod
    def read(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        purpose: Purpose = "doctor",
        env_file: Path = ENV_FILE,
    ) -> tuple[Self, tuple[SettingProblem, ...]]:
        """Like load, but returns what is good beside every problem, so that the doctor can go on."""
        problems: list[SettingProblem] = []
        values: dict[str, str] = {}
        try:
            values = env.merged(os.environ if environ is None else environ, env_file)
        except (ValueError, OSError) as unreadable:
            problems.append(SettingProblem(str(ENV_FILE), f"cannot be read: {unreadable}"))
        try:
            settings = cls.model_validate(values)
        except ValidationError as invalid:
            problems += _problems(invalid)
            good = {
                name: text
                for name, text in values.items()
                if name not in {each.variable for each in problems}
            }
            settings = cls.model_validate(good)
        wrong = {each.variable for each in problems}
        problems += [each for each in _missing(settings) if each.variable not in wrong]
        if purpose == "database":
            problems = [each for each in problems if each.variable in DATABASE_ONLY]
        return settings.model_copy(update=_derived(settings)), tuple(problems)


def _derived(settings: Settings) -> dict[str, object]:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return {
        "public_url": settings.public_url or f"http://{host}:{settings.port}",
        "migrate_database_url": settings.migrate_database_url or settings.database_url,
    }


def _problems(invalid: ValidationError) -> Iterator[SettingProblem]:
    """Our own sentence of each error; never pydantic's, which would quote the value."""
    for error in invalid.errors(include_url=False, include_input=False):
        context: dict[str, Any] = error.get("ctx", {})
        yield SettingProblem(
            str(error["loc"][0]), str(context.get("error", "has a value that cannot be read"))
        )


def _missing(settings: Settings) -> Iterator[SettingProblem]:
    if settings.slack_bot_token is None:
        yield SettingProblem(
            "SLACK_BOT_TOKEN",
            "is not set: take the Bot User OAuth Token from your app's page OAuth & Permissions",
        )
    if settings.slack_signing_secret is None:
        yield SettingProblem(
            "SLACK_SIGNING_SECRET", "is not set: take it from your app's page Basic Information"
        )
    if not settings.intake_tokens and not settings.intake_signing_secrets:
        yield SettingProblem(
            "INTAKE_TOKENS",
            "and INTAKE_SIGNING_SECRETS are both not set: nobody could post an event."
            " Set one, such as INTAKE_TOKENS=n8n:<a long random text>",
        )
    if settings.smtp_url is not None and settings.mail_from is None:
        yield SettingProblem(
            "MAIL_FROM", "is not set, but SMTP_URL is: name the address that mail comes from"
        )
