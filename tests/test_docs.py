"""The documentation against the code: tables, examples, links and commands that a reader will rely on.
Not here: whether the sentences are good.
"""

import base64
import hashlib
import hmac
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from dotenv import dotenv_values

from bot.cards.notices import Alert
from bot.connectors.answers import write_outcomes
from bot.contracts.problem import STATUS_AND_TITLE
from bot.demo.events import BUTTONS
from bot.doors.health import events_figure, work_figures
from bot.policy.ahead import Probe
from bot.policy.caps import Limits
from bot.policy.clauses import EffectPolicy, Retention, Rule
from bot.policy.kinds import load_policy
from bot.policy.retries import write_matrix
from bot.policy.signatures import SignedMessage, verify
from bot.policy.terms import Kind
from bot.policy.values import Clause
from bot.registry import find_connectors
from bot.settings import Settings
from store.states import OUTCOMES as RUN_OUTCOMES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
POLICY = README + (ROOT / "docs" / "policy.md").read_text("utf-8")
OPERATING = (ROOT / "docs" / "operating.md").read_text("utf-8")
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
WORKFLOWS = sorted((ROOT / "examples" / "n8n").glob("*.json"))

# What stands in the default's column where the value itself would say nothing to a reader.
TOLD_DEFAULTS = {"MIGRATE_DATABASE_URL": "`DATABASE_URL`", "PUBLIC_URL": "`http://HOST:PORT`"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# One that is worked out anew at every try or retry may not decide what an event is.
UNSTEADY = re.compile(r"\$now|\$today|\$execution\.id|Date\.now|new Date|Math\.random|\$runIndex")


def table(text: str, first_column: str) -> list[list[str]]:
    """The rows of the first table whose header's first cell is this, without header and rule."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_column} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def named(cell: str) -> list[str]:
    """What stands in code marks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def part(text: str, heading: str) -> str:
    """The text under one heading, up to the next of the same depth or less."""
    depth = heading.index(" ")
    after = text.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"\n#{{1,{depth}}} ", after, maxsplit=1)[0]


def marked(text: str, name: str) -> str:
    """What stands between a start mark that begins with this name and its end mark."""
    found = re.search(rf"<!-- {name}:[^\n]*-->\n(.*?)\n<!-- end of", text, re.DOTALL)
    assert found, f"there is no marked part {name}"
    return found[1]


def keys_of(clause: type[Clause]) -> set[str]:
    """The keys of a table of policy.toml as they are written there."""
    return {field.alias or name for name, field in clause.model_fields.items() if name != "name"}


def nodes(workflow: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """The nodes of one type."""
    return (node for node in workflow["nodes"] if node["type"] == f"n8n-nodes-base.{kind}")


def texts(value: object) -> Iterator[str]:
    """Every text within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


# The README's test command is the one that the build runs.
def test_build_runs_the_readmes_test_command() -> None:
    commands = re.findall(r"```sh\n(.*?)```", part(README, "## Two commands"), re.DOTALL)[0]
    assert re.findall(r"^make \w+", commands, re.MULTILINE) == ["make demo", "make test"]
    assert re.search(r"^make test\b", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)


# Every make target and every command of the program that the README names is there.
def test_named_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    program = (ROOT / "bot" / "__main__.py").read_text("utf-8")
    for page in PAGES:
        text = page.read_text("utf-8")
        for target in set(re.findall(r"`make ([a-z]+)", text)):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: make {target}"
        for command in set(re.findall(r"`python -m bot ([a-z]+)", text)):
            assert f'add("{command}"' in program, f"{page.name}: python -m bot {command}"


# The README's copy of the retry matrix is the one that the code obeys.
def test_retry_matrix_is_the_codes() -> None:
    assert marked(README, "retry matrix") == write_matrix()


# What each far side's answers mean is printed from the table that judges them.
@pytest.mark.parametrize("effect_type", sorted(find_connectors()))
def test_outcomes_are_the_codes(effect_type: str) -> None:
    name = "outcomes" if effect_type == "http" else f"outcomes of {effect_type}"
    assert marked(OPERATING, name) == write_outcomes(find_connectors()[effect_type].OUTCOMES)


# Every connector's table is printed.
def test_every_connector_is_told() -> None:
    named_parts = re.findall(r"<!-- outcomes of (\w+):", OPERATING)
    assert {"http", *named_parts} == set(find_connectors())


# The settings table names exactly the settings, in no other spelling.
def test_settings_table_names_every_setting() -> None:
    rows = table(README, "setting | default")
    assert [named(row[0]) for row in rows] == [[name.upper()] for name in Settings.model_fields]


# Each default in the settings table is the real one.
def test_settings_table_tells_the_defaults() -> None:
    for row in table(README, "setting | default"):
        name = named(row[0])[0]
        default = Settings.model_fields[name.lower()].default
        if name in TOLD_DEFAULTS:
            told = TOLD_DEFAULTS[name]
        elif default in (None, (), ""):
            told = "none"
        elif isinstance(default, Path):
            told = f"`./{default}`"
        else:
            told = f"`{str(default).lower() if isinstance(default, bool) else default}`"
        assert row[1] == told, name


# The example of .env names exactly the settings, and as it stands it sets none to something else.
def test_env_example_names_every_setting() -> None:
    values = dotenv_values(ROOT / "examples" / ".env.example")
    assert sorted(values) == sorted(name.upper() for name in Settings.model_fields)
    given = {name: value for name, value in values.items() if value}
    settings, _ = Settings.read(given, env_file=ROOT / "no.env")
    unset, _ = Settings.read({}, env_file=ROOT / "no.env")
    assert settings == unset


# The tables of the policy's keys name exactly the keys there are.
@pytest.mark.parametrize(
    ("heading", "clause"),
    [
        ("For a kind:", Kind),
        ("For `effect`:", EffectPolicy),
        ("For `probe`:", Probe),
        ("For `limits`:", Limits),
    ],
    ids=["kind", "effect", "probe", "limits"],
)
def test_policy_tables_name_every_key(heading: str, clause: type[Clause]) -> None:
    rows = table(POLICY.split(heading, 1)[1], "key | default")
    assert sorted(name for row in rows for name in named(row[0])) == sorted(keys_of(clause))


# The defaults that the policy's tables tell are those that an empty key gets.
def test_policy_tables_tell_the_defaults() -> None:
    told_for = (("For a kind:", Kind), ("For `effect`:", EffectPolicy), ("For `limits`:", Limits))
    for heading, clause in told_for:
        fields = {field.alias or name: field for name, field in clause.model_fields.items()}
        for row in table(POLICY.split(heading, 1)[1], "key | default"):
            default = fields[named(row[0])[0]].default
            if not re.fullmatch(r"`[^`]+`", row[1]) or "OPENAI" in row[1]:
                continue
            told = named(row[1])[0]
            seconds = re.fullmatch(r"([0-9]+)([smhd])", told)
            if seconds:
                unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}[seconds[2]]
                assert int(seconds[1]) * unit == default, row[0]
            else:
                assert told == str(default).lower(), row[0]


# Every level and operator of a rule has its sentence.
def test_rules_are_told_whole() -> None:
    levels = get_args(Rule.model_fields["level"].annotation)
    assert [named(row[0])[0] for row in table(POLICY, "level")] == list(levels)
    operators = POLICY.split("Operators are ", 1)[1].split(".", 1)[0]
    assert set(get_args(Rule.model_fields["op"].annotation)) <= set(named(operators))
    kept = next(
        row
        for row in table(README.split("For the whole file:", 1)[1], "key | default")
        if "retention" in row[0]
    )
    assert set(named(kept[2])) >= keys_of(Retention)


# Every policy that a reader may copy loads.
def test_policies_load() -> None:
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    example = (ROOT / "examples" / "policy.toml").read_text("utf-8")
    assert len(blocks) >= 1
    for text in (*blocks, example, re.sub(r"(?m)^# (?=\w+ = )", "", example)):
        assert load_policy(text).kinds


# The example policy has every key that a kind can have, save those of gates that are not there.
def test_example_policy_shows_every_key() -> None:
    text = (ROOT / "examples" / "policy.toml").read_text("utf-8")
    kind = tomllib.loads(re.sub(r"(?m)^# (?=\w+ = )", "", text))["kinds"]["customer_email"]
    assert keys_of(EffectPolicy) == set(kind["effect"])
    assert keys_of(Kind) - set(kind) <= {
        "cancel_window",
        "earned",
        "effects",
        "regulated",
        "qualified",
        "model",
        "retention",
    }


# Every JSON that the pages show parses.
def test_json_blocks_parse() -> None:
    for page in PAGES:
        for block in re.findall(r"```json\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            json.loads(block)


# Every answer of the HTTP interface is explained.
def test_every_refusal_is_told() -> None:
    rows = table(README, "answer | `status`")
    told = {(code, word) for row in rows for code in re.findall(r"\d{3}", row[0]) for word in named(row[1])}
    for kind, (status, _) in STATUS_AND_TITLE.items():
        if status != 404:
            assert (str(status), str(kind)) in told, kind
    assert {("202", "accepted"), ("200", "duplicate"), ("200", "stale")} <= told


# Every outcome has its meaning, and nothing else is one.
def test_every_outcome_is_told() -> None:
    words = [named(row[0])[0] for row in table(README, "`outcome`")]
    assert sorted(words) == sorted({"null", *RUN_OUTCOMES.values()})


# The figures that the page names are those that are exported.
def test_metrics_are_told() -> None:
    told = {named(row[0])[0].split("{")[0] for row in table(OPERATING, "figure")}
    ours = {f"{events_figure([], {}).name}_total", *(figure.name for figure in work_figures([]))}
    assert ours <= told


# The buttons of the demo that the tour names are on its page.
def test_tour_names_real_buttons() -> None:
    labels = {label for label, _ in BUTTONS.values()}
    told = {word for row in table(README, "do") for word in re.findall(r"\*([^*]+)\*", row[0])}
    assert told - labels <= {"Approve", "takes it, all goes silent"}


# Every relative link points to a file that is there, and to a heading that is there.
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text("utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name}: {link}"


# Every page of the decisions is in their list.
def test_decisions_are_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(LINK.findall((folder / "README.md").read_text("utf-8")))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}


# Each workflow is what n8n imports: nodes with names of their own, and connections between them only.
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflow_is_whole(file: Path) -> None:
    workflow = json.loads(file.read_text("utf-8"))
    names = [node["name"] for node in workflow["nodes"]]
    ids = [node["id"] for node in workflow["nodes"]]
    assert len(set(names)) == len(names)
    assert len(set(ids)) == len(ids)
    assert not workflow["active"]
    reached = set()
    for source, outputs in workflow["connections"].items():
        assert source in names
        targets = [end["node"] for ends in outputs["main"] for end in ends]
        assert set(targets) <= set(names)
        reached |= set(targets)
    starts = {node["name"] for node in nodes(workflow, "webhook")}
    notes = {node["name"] for node in nodes(workflow, "stickyNote")}
    assert set(names) - reached == starts | notes
    assert notes


# No workflow carries a credential, and every secret place is a credential to pick.
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflow_holds_no_secret(file: Path) -> None:
    workflow = json.loads(file.read_text("utf-8"))
    assert all("credentials" not in node for node in workflow["nodes"])
    for node in nodes(workflow, "httpRequest"):
        headers = node["parameters"].get("headerParameters", {}).get("parameters", [])
        assert "authorization" not in {header["name"].lower() for header in headers}


# Whatever is posted to Stet is raw, is tried as long as n8n can, and leaves by the error output at the end.
@pytest.mark.parametrize(
    "file", [file for file in WORKFLOWS if "receiver" not in file.name], ids=lambda file: file.name
)
def test_posts_are_set_as_the_readme_says(file: Path) -> None:
    workflow = json.loads(file.read_text("utf-8"))
    posts = [node for node in nodes(workflow, "httpRequest") if node["parameters"]["method"] == "POST"]
    assert len(posts) == 1
    for post in posts:
        parameters = post["parameters"]
        assert (parameters["contentType"], parameters["rawContentType"]) == ("raw", "application/json")
        assert (post["retryOnFail"], post["maxTries"], post["waitBetweenTries"]) == (True, 5, 5000)
        assert post["onError"] == "continueErrorOutput"
        assert len(workflow["connections"][post["name"]]["main"]) == 2


# What an event is comes from fields of the source: nothing that another try or retry would make otherwise.
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_events_are_steady(file: Path) -> None:
    workflow = json.loads(file.read_text("utf-8"))
    for node in nodes(workflow, "code"):
        code = node["parameters"]["jsCode"]
        if "event_key:" in code and "const event" in code:
            assert not UNSTEADY.search(code)
    for node in nodes(workflow, "httpRequest"):
        body = node["parameters"].get("body", "")
        assert not UNSTEADY.search(body)
        # The one thing that may differ is the resume URL, which is no part of what is compared.
        without = body.replace("resume_url: $execution.resumeUrl", "")
        assert "$execution" not in without
        for header in node["parameters"].get("headerParameters", {}).get("parameters", []):
            assert not UNSTEADY.search(header["value"]) or header["name"] == "X-N8n-Execution"


# Every expression is marked as one, and has whole brackets.
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_expressions_are_marked(file: Path) -> None:
    workflow = json.loads(file.read_text("utf-8"))
    for node in workflow["nodes"]:
        if node["type"].endswith("stickyNote"):
            continue
        for text in texts(node["parameters"]):
            assert ("{{" in text) == text.startswith("="), f"{node['name']}: {text[:60]}"
            assert "{{" not in EXPRESSION.sub("", text)


# A gate takes POST, has a suffix of its own, and its URL carries that suffix.
def test_gate_has_a_suffix() -> None:
    workflow = json.loads((ROOT / "examples" / "n8n" / "wait_gate.json").read_text("utf-8"))
    gate = next(node for node in nodes(workflow, "wait") if node["parameters"]["resume"] == "webhook")
    suffix = gate["parameters"]["options"]["webhookSuffix"]
    assert gate["parameters"]["httpMethod"] == "POST"
    assert gate["parameters"]["limitWaitTime"] is True
    post = next(node for node in nodes(workflow, "httpRequest") if node["parameters"]["method"] == "POST")
    assert f"resumeUrl.replace('?', '/{suffix}?')" in post["parameters"]["body"]


# The receiver answers only after the work, and with the id that the example policy asks for.
def test_receiver_answers_after_the_work() -> None:
    workflow = json.loads((ROOT / "examples" / "n8n" / "effect_receiver.json").read_text("utf-8"))
    assert next(nodes(workflow, "webhook"))["parameters"]["responseMode"] == "responseNode"
    done = next(node for node in nodes(workflow, "respondToWebhook") if node["name"] == "Done")
    policy = load_policy((ROOT / "examples" / "policy.toml").read_text("utf-8"))
    (effect,) = policy.kinds["customer_email"].all_effects
    assert f"{{ {effect.response_id}:" in done["parameters"]["responseBody"]


# The recipe with a text secret: what n8n's Crypto node computes is what Stet's setting verifies.
def test_signed_recipe_verifies() -> None:
    text = "6a1f" * 16
    setting = "n8n:whsec_" + base64.b64encode(text.encode()).decode()
    settings, _ = Settings.read({"INTAKE_SIGNING_SECRETS": setting}, env_file=ROOT / "no.env")
    raw = '{"event_key":"ticket-1-v1"}'
    to_sign = f"ticket-1-v1.1700000000.{raw}"
    digest = hmac.new(text.encode(), to_sign.encode(), hashlib.sha256).digest()
    message = SignedMessage("ticket-1-v1", "1700000000", raw.encode())
    header = "v1," + base64.b64encode(digest).decode()
    found = verify(message, header, secrets=settings.intake_signing_secrets, now=1_700_000_100)
    assert found == "n8n"


# The compose file parses, and gives a stop the time that it needs.
def test_compose_file_parses() -> None:
    services = yaml.safe_load((ROOT / "deploy" / "compose.yml").read_text("utf-8"))["services"]
    assert services["stet"]["stop_grace_period"] == "20s"
    assert services["migrate"]["command"] == ["migrate"]


# Operators find every alert in the table of alerts, and the table names none that is not.
def test_alerts_are_told() -> None:
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    table = text.split("## What `OPS_CHANNEL` hears")[1].split("\n## ")[0]
    named = {
        word
        for row in table.splitlines()
        for word in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == {*Alert, "unknown_effect"}


# Somebody raises every alert that there is a sentence for: one that nobody raises promises in words alone.
@pytest.mark.parametrize("alert", Alert)
def test_alerts_are_raised(alert: Alert) -> None:
    rooms = (ROOT / "bot" / room for room in ("flow", "doors", "."))
    texts = [path.read_text("utf-8") for room in rooms for path in room.glob("*.py")]
    assert any(f'"{alert}"' in text or f"Alert.{alert.name}" in text for text in texts)
