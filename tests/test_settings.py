"""Settings: what is read, what stops the start, and that no secret is ever shown.
Not here: checks against the real Slack, model and database (tests/test_doctor.py).
"""

import base64
from pathlib import Path

import pytest

from bot.settings import SettingProblem, Settings, SettingsError

WHSEC = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes...").decode()
OTHER = "whsec_" + base64.b64encode(b"another secret of 32 bytes.....").decode()
GOOD = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "5ec2e7", "INTAKE_TOKENS": "n8n:let-me-in"}
NOWHERE = Path("/nowhere/.env")


def load(**changes: str) -> Settings:
    return Settings.load({**GOOD, **changes}, env_file=NOWHERE)


def refusal(**changes: str) -> str:
    with pytest.raises(SettingsError) as refused:
        load(**changes)
    return str(refused.value)


# With only what is required, everything else has the default of the specification.
def test_defaults() -> None:
    settings = load()
    assert settings.database_url is None
    assert settings.migrate_database_url is None
    assert settings.data_dir == Path("./data")
    assert (settings.host, settings.port, settings.public_url) == ("127.0.0.1", 3000, "http://127.0.0.1:3000")
    assert settings.slack_api_url == "https://slack.com/api/"
    assert settings.policy_file == Path("./policy.toml")
    assert settings.ai_actions_enabled is False
    assert settings.effect_allowed_hosts == ""
    assert (settings.language, settings.log_level, settings.log_format) == ("en", "INFO", "json")
    assert (settings.admin_users, settings.kill_users, settings.ops_channel) == ((), (), None)


# A server without its Slack app or without any way in does not start, and says all of it at once.
def test_serve_names_everything_missing() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.load({}, env_file=NOWHERE)
    lines = str(refused.value).splitlines()
    assert [line.split()[0] for line in lines] == ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "INTAKE_TOKENS"]
    assert [problem.variable for problem in refused.value.problems] == [line.split()[0] for line in lines]


# A migration needs no Slack app and overlooks what has nothing to do with the database, but not its address.
def test_migrate_reads_only_what_it_needs() -> None:
    environ = {"DATABASE_URL": "postgresql://db/stet", "SLACK_BOT_TOKEN": "broken \n", "PORT": "no"}
    settings = Settings.load(environ, purpose="database", env_file=NOWHERE)
    assert settings.migrate_database_url == settings.database_url
    with pytest.raises(SettingsError, match=r"^DATABASE_URL must look like"):
        Settings.load({"DATABASE_URL": "db"}, purpose="database", env_file=NOWHERE)


# The doctor gets every problem, and beside them what is good.
def test_doctor_goes_on_with_what_is_good() -> None:
    settings, problems = Settings.read({**GOOD, "PORT": "http", "LANGUAGE": "fr"}, env_file=NOWHERE)
    assert sorted(problem.variable for problem in problems) == ["LANGUAGE", "PORT"]
    assert settings.port == 3000
    assert settings.slack_bot_token is not None


# Each wrong value is refused in one line that begins with the variable and tells the mend.
@pytest.mark.parametrize(
    ("variable", "value", "mend"),
    [
        ("PORT", "65536", "0 to 65535"),
        ("PORT", "-1", "0 to 65535"),
        ("PORT", "３０００", "0 to 65535"),
        ("HOST", "my host", "127.0.0.1"),
        ("PUBLIC_URL", "stet.example.com", "https://host"),
        ("PUBLIC_URL", "https://user:pass@stet.example.com", "without user"),
        ("SLACK_API_URL", "slack.com/api", "https://host"),
        ("SLACK_BOT_TOKEN", "xapp-1", "xoxb-"),
        ("SLACK_APP_TOKEN", "xoxb-1", "xapp-"),
        ("OPENAI_BASE_URL", "localhost:8000", "https://host"),
        ("INTAKE_TOKENS", "let-me-in", "name:secret"),
        ("INTAKE_TOKENS", "N8N:let-me-in", "a-z"),
        ("INTAKE_TOKENS", "n8n:a,,b:c", "pair 2"),
        ("INTAKE_SIGNING_SECRETS", "n8n:plain", "whsec_ followed by base64"),
        ("INTAKE_SIGNING_SECRETS", "n8n:whsec_%%%", "whsec_ followed by base64"),
        ("EFFECT_SIGNING_SECRET", "plain", "whsec_ followed by base64"),
        ("EFFECT_ALLOWED_HOSTS", "https://hooks.example.com/x", "host:port"),
        ("AI_ACTIONS_ENABLED", "True", "exactly true or false"),
        ("AI_ACTIONS_ENABLED", "1", "exactly true or false"),
        ("AI_ACTIONS_ENABLED", " true", "exactly true or false"),
        ("AI_ACTIONS_ENABLED", " ", "exactly true or false"),
        ("ADMIN_USERS", "@ada", "write ids"),
        ("KILL_USERS", "U1,C2", "entry 2"),
        ("OPS_CHANNEL", "#ops", "not its name"),
        ("SMTP_URL", "mail.example.com:25", "smtp://host:587"),
        ("SMTP_URL", "smtp://mail.example.com:port", "smtp://host:587"),
        ("SMTP_URL", "smtp://ada@mail.example.com", "both or neither"),
        ("MAIL_FROM", "Stet", "stet@example.com"),
        ("MAIL_FROM", "a@b.example, c@d.example", "one address"),
        ("LANGUAGE", "fr", "en or zh-CN"),
        ("LOG_LEVEL", "LOUD", "DEBUG"),
        ("LOG_FORMAT", "xml", "json or text"),
        ("DATABASE_URL", "postgresql://db/stet\n", "white space"),
        ("DATABASE_URL", "postgresql://ada:50%zz@db/stet", "%25"),
        ("DATABASE_URL", "hosts=db", "libpq knows"),
        ("OPENAI_BASE_URL", "http://[::1/v1", "no port that can be"),
        ("OPENAI_BASE_URL", "http://localhost:99999/v1", "no port that can be"),
    ],
)
def test_wrong_value_names_variable_and_mend(variable: str, value: str, mend: str) -> None:
    said = refusal(**{variable: value})
    assert said.splitlines()[0].startswith(f"{variable} ")
    assert mend in said


# White space around a secret is refused, not trimmed.
@pytest.mark.parametrize("space", [" {}", "{} ", "{}\n", "\t{}", "{}\r"])
@pytest.mark.parametrize(
    ("variable", "secret"),
    [
        ("SLACK_BOT_TOKEN", "xoxb-1"),
        ("SLACK_SIGNING_SECRET", "5ec2e7"),
        ("SLACK_APP_TOKEN", "xapp-1"),
        ("OPENAI_API_KEY", "sk-1"),
        ("EFFECT_SIGNING_SECRET", WHSEC),
        ("SMTP_URL", "smtp://mail.example.com"),
    ],
)
def test_space_around_a_secret_is_refused(variable: str, secret: str, space: str) -> None:
    assert "white space" in refusal(**{variable: space.format(secret), "MAIL_FROM": "a@b.example"})


# The same holds for each secret in a list; a space after a comma belongs to no secret.
def test_space_around_a_listed_secret_is_refused() -> None:
    assert "of n8n has white space" in refusal(INTAKE_TOKENS="n8n:secret ,b:other")
    assert "of n8n has white space" in refusal(INTAKE_TOKENS="n8n: secret")
    assert [each.name for each in load(INTAKE_TOKENS="n8n:secret, crm:other").intake_tokens] == ["n8n", "crm"]


# A secret is in no error and no repr, whatever is wrong with it.
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SLACK_BOT_TOKEN", "xoxb-MARK\n"),
        ("SLACK_APP_TOKEN", "xoxb-MARK"),
        ("OPENAI_API_KEY", "sk-MARK "),
        ("INTAKE_TOKENS", "MARK"),
        ("INTAKE_TOKENS", "a:MARK,b:MARK"),
        ("INTAKE_TOKENS", "a:MARK "),
        ("INTAKE_SIGNING_SECRETS", "a:MARK"),
        ("EFFECT_SIGNING_SECRET", "MARK"),
        ("EFFECT_ALLOWED_HOSTS", "https://hooks.example.com/MARK"),
        ("DATABASE_URL", "MARK"),
        ("SMTP_URL", "smtp://ada:MARK@host:none"),
        ("PUBLIC_URL", "https://MARK@host"),
    ],
)
def test_no_error_shows_a_value(variable: str, value: str) -> None:
    settings, problems = Settings.read({**GOOD, variable: value}, env_file=NOWHERE)
    with pytest.raises(SettingsError) as refused:
        load(**{variable: value})
    everything = [str(refused.value), repr(refused.value), repr(problems), repr(settings), str(settings)]
    chain = refused.value.__cause__ or refused.value.__context__
    assert not any("MARK" in text for text in [*everything, repr(chain)])


# A good secret is in no repr either.
def test_no_repr_shows_a_secret() -> None:
    settings = load(
        SLACK_APP_TOKEN="xapp-MARK",
        OPENAI_API_KEY="sk-MARK",
        INTAKE_TOKENS="n8n:MARK",
        INTAKE_SIGNING_SECRETS=f"n8n:{WHSEC}",
        EFFECT_SIGNING_SECRET=WHSEC,
        DATABASE_URL="postgresql://ada:MARK@db/stet",
        SMTP_URL="smtp://MARK:MARK@mail.example.com",
        MAIL_FROM="a@b.example",
    )
    shown = repr(settings) + str(settings) + repr(settings.model_dump())
    assert "MARK" not in shown
    assert "thirty-two" not in shown
    assert WHSEC not in shown


# The settings cannot be changed after the start.
def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().port = 1  # type: ignore[misc]


# Two secrets under one name rotate; one secret under two names stops the start.
def test_intake_secrets() -> None:
    rotating = load(INTAKE_SIGNING_SECRETS=f"n8n:{WHSEC},n8n:{OTHER}").intake_signing_secrets
    assert [(each.name, each.secret[:9]) for each in rotating] == [
        ("n8n", b"a secret "),
        ("n8n", b"another s"),
    ]
    assert load(INTAKE_TOKENS="n8n:with:colon").intake_tokens[0].secret == b"with:colon"
    assert "gives n8n and crm the same secret" in refusal(INTAKE_TOKENS="n8n:same,crm:same")
    assert "gives n8n and crm the same secret" in refusal(INTAKE_SIGNING_SECRETS=f"n8n:{WHSEC},crm:{WHSEC}")


# The kill switch opens for exactly `true`, and stays closed for `false` and nothing.
@pytest.mark.parametrize(("value", "open_"), [("true", True), ("false", False), ("", False)])
def test_ai_actions_enabled(value: str, open_: bool) -> None:
    assert load(AI_ACTIONS_ENABLED=value).ai_actions_enabled is open_


# Lists of Slack people take users and user groups, with commas or spaces.
def test_slack_people() -> None:
    settings = load(ADMIN_USERS="U1, W2,S3", KILL_USERS="U4 U4")
    assert settings.admin_users == ("U1", "W2", "S3")
    assert settings.kill_users == ("U4",)


# Addresses are brought to one spelling.
def test_addresses() -> None:
    settings = load(HOST="::1", PORT="0", SLACK_API_URL="http://127.0.0.1:9/api")
    assert settings.public_url == "http://[::1]:0"
    assert settings.slack_api_url == "http://127.0.0.1:9/api/"
    assert load(PUBLIC_URL="https://stet.example.com/").public_url == "https://stet.example.com"
    hosts = load(
        EFFECT_ALLOWED_HOSTS="api.example.com, *.crm.example,127.0.0.1:8080,[::1]:80,"
    ).effect_allowed_hosts
    assert hosts == "api.example.com,*.crm.example,127.0.0.1:8080,[::1]:80"


# The mail server's address is taken apart, its user and password decoded.
def test_mail_server() -> None:
    server = load(SMTP_URL="smtps://ada:p%40ss@mail.example.com", MAIL_FROM="Stet <s@b.example>").smtp_url
    assert server is not None
    assert (server.host, server.port, server.tls, server.user) == ("mail.example.com", 465, True, "ada")
    assert server.password is not None
    assert server.password.get_secret_value() == "p@ss"
    assert refusal(SMTP_URL="smtp://mail.example.com").startswith("MAIL_FROM is not set")


# A LANGUAGE that the system set for gettext is no mistake; we speak what we can.
@pytest.mark.parametrize(
    ("value", "spoken"),
    [("zh-CN", "zh-CN"), ("en_US:en", "en"), ("de_DE:de", "en"), ("zh_CN:zh", "zh-CN"), ("", "en")],
)
def test_language(value: str, spoken: str) -> None:
    assert load(LANGUAGE=value).language == spoken


# The environment wins over `.env`, which may use quotes, comments and export.
def test_env_file(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(
        "# ours\nexport PORT=4000\nOPENAI_MODEL='a model'\nLOG_FORMAT=text # for people\nHOST=::1\n"
    )
    settings = Settings.load({**GOOD, "HOST": "0.0.0.0"}, env_file=env_file)  # noqa: S104
    assert (settings.port, settings.host) == (4000, "0.0.0.0")  # noqa: S104
    assert (settings.openai_model, settings.log_format) == ("a model", "text")


# White space at the end of a secret in `.env` is refused like anywhere else.
@pytest.mark.parametrize(
    "line", ["OPENAI_API_KEY=sk-1 \n", "OPENAI_API_KEY='sk-1 '\n", "OPENAI_API_KEY= sk-1"]
)
def test_space_in_the_env_file(tmp_path: Path, line: str) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(line)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY has white space"):
        Settings.load(GOOD, env_file=env_file)


# A line of `.env` that cannot be read is named by its number, never quoted.
def test_broken_env_file(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("PORT=1\nMARK 'x\n")
    with pytest.raises(SettingsError, match=r"\.env cannot be read: line 2 of") as refused:
        Settings.load(GOOD, env_file=env_file)
    assert "MARK" not in str(refused.value)


# A problem reads as one line.
def test_problem_is_a_line() -> None:
    assert str(SettingProblem("PORT", "must be a number")) == "PORT must be a number"
