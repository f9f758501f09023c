"""/stet: what people type, who may, and what they hear.

Not here: what a closed switch holds back (tests/flow) or how answers are drawn (tests/cards).
"""

import json
from typing import Any

import psycopg
import pytest

from bot.demo.slack_payloads import Forge
from bot.demo.slack_workspace import (
    OTHER_TEAM,
    TEAM,
    U_ADMIN,
    U_ALICE,
    U_BOB,
    U_GONE,
    U_GUEST,
    U_MEMBER,
    U_ROBOT,
    U_STRANGER,
)
from bot.doors.typed import read_key, read_reason, read_scope, read_typed
from tests.doors.slack_world import World
from tests.makers import SNAPSHOT, change, make_draft, make_effect, rows


def switch(world: World) -> dict[str, tuple[bool, str | None]]:
    """Each scope: open, and why."""
    found = rows(world.dsn, "SELECT scope, open, reason FROM kill_switch")
    return {row["scope"]: (row["open"], row["reason"]) for row in found}


# F037: quotes, dashes, case and spaces as phones make them: kill stops sending, with or without a reason.
@pytest.mark.parametrize(
    ("text", "scope", "reason"),
    [
        ("kill —reason “mail storm”", "all", "mail storm"),
        ("  KILL", "all", None),
        ("Kill ‘mail storm’", "all", "mail storm"),
        ("kill\u00a0all\u2003mail storm", "all", "mail storm"),
        ("“kill” llm too dear", "llm", "too dear"),
        ("kill KIND:Customer_Email – wrong template", "kind:customer_email", "wrong template"),
        ("kill kind: customer_email x", "kind:customer_email", "x"),
        ("kill effect:smtp", "effect:smtp", None),
        ("kill everything is wrong", "all", "everything is wrong"),
        ("kill\u200b all-hands", "all", "all-hands"),
    ],
)
async def test_kill(world: World, text: str, scope: str, reason: str | None) -> None:
    said = await world.say(U_ADMIN, text)
    stops = "The model is asked" if scope == "llm" else "No further send starts.\nNothing is on its way."
    assert said.startswith(f"🔴 Stopped: {scope}. {stops}")
    assert ("Please add why" in said) == (reason is None)
    assert switch(world)[scope] == (False, reason)
    [line] = await world.chain("system")
    assert (line.actor, line.action) == (f"slack:T0STET:{U_ADMIN}", "killed")
    assert {"show", "dispatch"} <= set(world.woken)


# A word nobody knows is answered with usage and how things stand, and changes nothing.
async def test_unknown_word(world: World) -> None:
    said = await world.say(U_ADMIN, "kil")
    assert "I do not know “kil”." in said
    assert "/stet kill [SCOPE] REASON" in said
    assert "Sending is on." in said
    assert [is_open for is_open, _ in switch(world).values()] == [True]


# Without a word, or with help, the caller sees what they may use.
async def test_help(world: World) -> None:
    for text in ("", "  ", "help", "—help"):
        assert "/stet queue" in await world.say(U_ALICE, text)
    assert "kill" not in await world.say(U_ALICE, "")
    said = await world.say(U_ADMIN, "")
    assert "kill" in said
    assert not [word for word in ("rerun", "metrics", "erase") if word in said]


# Who may pull the switch alone finds kill in their help and beside a slip of it, and no other word of admins.
async def test_help_of_who_may_kill(world: World) -> None:
    for text in ("", "kil"):
        said = await world.say(U_BOB, text)
        assert "/stet kill [SCOPE] REASON" in said
        assert "SCOPE is all, llm" in said
        assert not [word for word in ("/stet resume", "/stet unknown") if word in said]


# A reason that is too long kills all the same, and the answer says how much of it was kept.
@pytest.mark.parametrize("word", ["kill", "resume"])
async def test_long_reason(world: World, word: str) -> None:
    assert "kept" not in await world.say(U_ADMIN, f"{word} {'x' * 1000}")
    assert "its first 1,000 characters are kept" in await world.say(U_ADMIN, f"{word} {'y' * 1001}")
    (row,) = rows(world.dsn, "SELECT reason FROM kill_switch WHERE scope = 'all'")
    assert row["reason"] == "y" * 1000


# A kind or type that nobody knows is not closed: the list of those there are comes back.
async def test_unknown_scope(world: World) -> None:
    said = await world.say(U_ADMIN, "kill kind:custommer_email storm")
    assert said == "There is no kind:custommer_email, so nothing was changed. Known: kind:customer_email"
    assert "effect:http, effect:resume" in await world.say(U_ADMIN, "kill effect:fax")
    assert list(switch(world)) == ["all"]


# A kind that left the policy can be stopped while something of it is still in the works.
async def test_scope_of_a_kind_that_is_gone(world: World) -> None:
    make_draft(world.dsn, run={"kind": "old_kind"})
    assert (await world.say(U_ADMIN, "kill kind:old_kind")).startswith("🔴 Stopped: kind:old_kind")


# The answer to kill lists what was on the wire at that moment, and only that.
async def test_kill_lists_what_started(world: World) -> None:
    make_effect(world.dsn, state="sending", started=True)
    make_effect(world.dsn, state="sending")
    [started] = rows(
        world.dsn, "SELECT idempotency_key AS key FROM effect_outbox WHERE started_at IS NOT NULL"
    )
    said = await world.say(U_ADMIN, "kill storm")
    assert f"Started before and not ended: 1\n• {started['key']}" in said


# Closed twice says so, and a reason given afterwards is kept.
async def test_kill_again(world: World) -> None:
    await world.say(U_ADMIN, "kill")
    assert (await world.say(U_ADMIN, "kill storm")).startswith("🔴 Already stopped: all.")
    assert switch(world)["all"] == (False, "storm")


# Somebody else who pulls it once more without a word takes nothing away: why, by whom and since when.
@pytest.mark.parametrize("scope", ["all", "llm", "kind:customer_email"])
async def test_kill_by_another(world: World, scope: str) -> None:
    await world.say(U_ADMIN, f"kill {scope} mail storm")
    [before] = rows(world.dsn, "SELECT * FROM kill_switch WHERE scope = %(scope)s", scope=scope)
    said = await world.say(U_BOB, f"kill {scope}")
    assert said.startswith(f"🔴 Already stopped: {scope}.")
    assert "Please add why" not in said
    assert rows(world.dsn, "SELECT * FROM kill_switch WHERE scope = %(scope)s", scope=scope) == [before]
    assert [line.action for line in await world.chain("system")] == ["killed", "killed"]
    await world.say(U_ADMIN, f"resume {scope} over")
    assert "Please add why" in await world.say(U_BOB, f"kill {scope}")
    assert switch(world)[scope] == (False, None)


# Resume needs a reason and names what another scope still stops; a missing row is made again.
async def test_resume(world: World) -> None:
    await world.say(U_ADMIN, "kill")
    await world.say(U_ADMIN, "kill llm too dear")
    assert await world.say(U_ADMIN, "resume") == "Please give a reason: /stet resume [SCOPE] REASON"
    assert switch(world)["all"] == (False, None)
    assert await world.say(U_ADMIN, "resume “all fixed”") == "🟢 Resumed: all.\nStill stopped: llm"
    assert switch(world)["all"] == (True, "all fixed")
    change(world.dsn, "DELETE FROM kill_switch WHERE scope = 'all'")
    assert "the switch has no row" in await world.say(U_ADMIN, "status")
    assert (await world.say(U_ADMIN, "resume all here again")).startswith("🟢 Resumed: all.")
    assert switch(world)["all"] == (True, "here again")
    assert (await world.say(U_ADMIN, "resume all once more")).startswith("🟢 Was not stopped: all.")


# Who may pull the switch may not release it; everybody else may neither, and every try is on the record.
async def test_who_may(world: World) -> None:
    assert (await world.say(U_BOB, "kill storm")).startswith("🔴 Stopped: all.")
    assert (await world.say(U_BOB, "resume fixed")).startswith("You may pull the switch, but only an admin")
    for text in ("kill", "resume x", "unknown", "rerun x", "metrics", "erase x"):
        assert await world.say(U_ALICE, text) == "Only admins may do this."
    assert switch(world)["all"] == (False, "storm")
    lines = [(line.action, json.loads(line.detail or "")) for line in await world.chain("system")]
    assert [action for action, _ in lines] == ["killed", *["refused"] * 7]
    assert [detail["command"] for action, detail in lines if action == "refused"] == [
        "resume",
        "kill",
        "resume",
        "unknown",
        "rerun",
        "metrics",
        "erase",
    ]


# Guests, strangers, deactivated accounts and bots may use nothing, admins' lists or not.
@pytest.mark.parametrize("user", [U_GUEST, U_STRANGER, U_GONE, U_ROBOT])
@pytest.mark.parametrize("text", ["", "kill", "queue", "status", "show x", "nonsense"])
async def test_outsiders(world: World, user: str, text: str) -> None:
    world.slack.state.workspace.groups["S0ADMINS"].append(user)
    forge = Forge(change=lambda form: form.update(team_id=OTHER_TEAM) if user == U_STRANGER else None)
    reply = await world.slack.actor.slash(user, text, forge=forge)
    assert reply.kept
    heard = await world.heard(user)
    assert heard == ["Only full members of this workspace may use this."]
    assert [is_open for is_open, _ in switch(world).values()] == [True]
    assert [line.action for line in await world.chain("system")] == ["refused"]


# Status says how the switch stands and what is in the works.
async def test_status(world: World) -> None:
    make_draft(world.dsn)
    make_effect(world.dsn)
    make_effect(world.dsn, state="unknown")
    await world.say(U_ADMIN, "kill effect:smtp wrong template")
    said = await world.say(U_MEMBER, "STATUS")
    assert "🔴 Stopped: effect:smtp, by <@U0ADMIN>, <!date^" in said
    assert "Reason: wrong template" in said
    assert "Waiting for people: 1 · to be sent: 1 · sending: 0 · unknown: 1" in said


# The queue holds what the caller may review, oldest first; nobody else's kinds, nothing blocked or expired.
async def test_queue(world: World) -> None:
    make_draft(world.dsn, run={"entity": "customer:2"})
    make_draft(world.dsn, run={"entity": "customer:1"})
    make_draft(world.dsn, run={"entity": "customer:3", "kind": "other_kind"})
    make_draft(world.dsn, run={"entity": "customer:4"}, expires_in_seconds=-1)
    change(world.dsn, "UPDATE drafts SET opened_at = now() - interval '1 day' WHERE entity = 'customer:1'")
    said = (await world.say(U_ALICE, "queue")).splitlines()
    assert said[0] == "Waiting for you: 2"
    assert "customer:1" in said[1]
    assert "customer:2" in said[2]
    assert await world.say(U_MEMBER, "queue") == "No draft waits for you."


# Unknown effects are listed for admins, longest first.
async def test_unknown(world: World) -> None:
    assert await world.say(U_ADMIN, "unknown") == "No effect is unknown."
    make_effect(world.dsn, state="unknown")
    key = rows(world.dsn, "SELECT idempotency_key AS k FROM effect_outbox")[0]["k"]
    said = await world.say(U_ADMIN, "unknown")
    assert said.splitlines()[1].startswith(f"{key} · http · since <!date^")


# A key's history is one command away, by the whole key or the event key alone, however a phone spelled it.
@pytest.mark.parametrize("typed", ["n8n:customer_email:it's--1", "it's--1", "“it’s—1”"])
async def test_show(world: World, typed: str) -> None:
    card = world.card(run={"event_key": "it's--1"})
    await card.click(U_BOB)
    said = await world.say(U_ALICE, f"show {typed}")
    assert said.startswith("n8n:customer_email:it's--1\napproved · received <!date^")
    assert "Revision 1, by model" in said
    assert "Decision: approve, by <@U0BOB>" in said
    assert "Effect http: pending" in said
    assert said.splitlines()[-1].endswith("· <@U0BOB> · approved")


# Effects are told by their names: which one waits for which, while it does, and who had which taken back.
async def test_show_effects(world: World) -> None:
    terms = [SNAPSHOT["effect"] | {"name": name} for name in ("mail", "note")]
    draft = make_draft(world.dsn, snapshot={"effects": terms}, status="approved", run={"event_key": "one"})
    mail = make_effect(world.dsn, draft=draft, clause="{0}", state="sending")
    note = "https://crm.example/note"
    make_effect(world.dsn, draft=draft, clause="{1}", target=note, after_id=mail)
    said = await world.say(U_ALICE, "show one")
    assert "Effect mail · http: sending\nEffect note · http: pending, waits for mail" in said
    change(
        world.dsn,
        "UPDATE effect_outbox SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL"
        " WHERE effect_id = %(id)s",
        id=mail,
    )
    assert (await world.say(U_ALICE, "show one")).count("waits for") == 0
    back, who = "https://crm.example/back", f"slack:{TEAM}:{U_BOB}"
    make_effect(world.dsn, draft=draft, clause="{0,undo}", target=back, undo_of=mail, undo_by=who)
    assert "Undo of mail by <@U0BOB>, http: pending" in await world.say(U_ALICE, "show one")


# An only effect has no name: it is told by its type, and so is what takes it back.
async def test_show_an_only_effect(world: World) -> None:
    draft = make_draft(world.dsn, status="sent", run={"event_key": "one"})
    sent = make_effect(world.dsn, draft=draft, state="completed", provider_id="p-17")
    back, who = "https://crm.example/back", f"slack:{TEAM}:{U_BOB}"
    make_effect(world.dsn, draft=draft, clause="{0,undo}", target=back, undo_of=sent, undo_by=who)
    said = await world.say(U_ALICE, "show one")
    assert "Effect http: completed. Provider's id: p-17\nUndo of http by <@U0BOB>, http: pending" in said


# Whoever does not review the kind learns nothing of its keys, not even that there are any; admins do.
async def test_show_to_others(world: World) -> None:
    make_draft(world.dsn, run={"event_key": "one"})
    missing = await world.say(U_MEMBER, "show nothing-like-it")
    assert missing == "I have never seen nothing-like-it."
    assert await world.say(U_MEMBER, "show one") == "I have never seen one."
    assert (await world.say(U_ADMIN, "show one")).startswith("n8n:customer_email:one")
    assert await world.say(U_ALICE, "show") == "Please name the key: /stet show KEY"
    assert [line.action for line in await world.chain("n8n:customer_email:one")] == ["refused"]


# What is not in this version says so plainly.
@pytest.mark.parametrize("word", ["rerun", "metrics", "erase"])
async def test_later(world: World, word: str) -> None:
    assert await world.say(U_ADMIN, f"{word} x") == f"/stet {word} comes with a later version."


# A kill that meets a held lock is answered later, at the command's own address, and is closed by then.
async def test_slow_kill(world: World) -> None:
    with psycopg.connect(world.dsn) as holder:
        holder.execute("SELECT * FROM kill_switch FOR UPDATE")
        reply = await world.slack.actor.slash(U_ADMIN, "kill storm")
        assert reply.status == 200
        assert reply.body == b""
        holder.rollback()
    [said] = await world.heard(U_ADMIN)
    assert said.startswith("🔴 Stopped: all.")
    assert switch(world)["all"] == (False, "storm")


# Answers go to the caller alone, and text from outside in them mentions nobody.
async def test_hostile_words(world: World) -> None:
    said = await world.say(U_ADMIN, "<!channel> & <@U0BOB>")
    assert "“&lt;!channel&gt;”" in said
    await world.say(U_ADMIN, "kill <!channel> now")
    assert "&lt;!channel&gt; now" in await world.say(U_ALICE, "status")
    assert world.slack.state.channel_messages("C0REVIEW") == []


# With the database away the caller hears so.
async def test_database_away(world: World) -> None:
    await world.db.close()
    assert (await world.say(U_ADMIN, "kill storm")).startswith("The database is away.")


CHANGES: dict[str, Any] = {
    "no user": lambda form: form.pop("user_id"),
    "a user that is none": lambda form: form.update(user_id="<@U0ALICE>"),
    "no team": lambda form: form.pop("team_id"),
    "no text": lambda form: form.pop("text"),
    "text with NUL": lambda form: form.update(text="kill \x00"),
    "another command": lambda form: form.update(command="/other"),
}


# A command of any shape is answered with 200.
@pytest.mark.parametrize("name", CHANGES)
async def test_strange_shapes(world: World, name: str) -> None:
    reply = await world.slack.actor.slash(U_ALICE, "help", forge=Forge(change=CHANGES[name]))
    assert reply.status == 200


# The Home says what waits for its person, to others that it is not for them; events sent again do no harm.
async def test_home(world: World) -> None:
    make_draft(world.dsn)
    for user in (U_ALICE, U_ALICE, U_GUEST):
        assert (await world.slack.actor.open_home(user)).status == 200
        await world.doors.settle()
    assert "Waiting for you: 1" in json.dumps(world.slack.state.homes[U_ALICE].content)
    assert "Only full members" in json.dumps(world.slack.state.homes[U_GUEST].content)


# Another tab of the app publishes nothing.
async def test_other_tab(world: World) -> None:
    forge = Forge(change=lambda body: body["event"].update(tab="messages"))
    assert (await world.slack.actor.open_home(U_ALICE, forge)).status == 200
    await world.doors.settle()
    assert world.slack.state.homes == {}


# What was typed is read apart without regard to how it was typed.
def test_typed() -> None:
    assert read_typed("  “Show”  a  b ").rest == "a  b"
    assert read_scope("ALL, now") == ("all", "now")
    assert read_scope("alls well") == (None, "alls well")
    assert read_scope("--all now") == ("all", "now")
    assert read_reason("--reason: “x”") == "x"
    assert read_reason("say “no” to it") == "say “no” to it"
    assert read_reason("reason enough") == "reason enough"
    assert "a&b" in read_key("a&amp;b")
