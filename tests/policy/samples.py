"""A whole, valid policy to change one thing in.
Not here: any expectation.
"""

from typing import Any

import pytest

from bot.policy.kinds import Kind, PolicyError, load_policy

HEAD = """
[kinds.customer_email]
gate = "approve_first"
sources = ["n8n"]
channel = "C0123ABCD"
reviewers = ["S0REVIEWERS", "U0ALICE"]
effect = { type = "http", target = "https://n8n.example/webhook/send", recipient = "payload.to" }
"""
DRAFTING = """
prompt = "Answer: {payload}"
[kinds.customer_email.output]
type = "object"
properties = { subject = { type = "string" }, body = { type = "string" }, label = { type = "string" } }
"""


def policy_text(*, head: str = "", tail: str = "", **replaced: str) -> str:
    """A valid file with lines added after the kind's first keys or at the end, or keys given other values.

    A replaced key of an empty value is left out.
    """
    lines = []
    for line in HEAD.splitlines():
        key = line.split(" = ")[0]
        if key not in replaced:
            lines.append(line)
        elif replaced[key]:
            lines.append(f"{key} = {replaced.pop(key)}")
    lines += [f"{key} = {value}" for key, value in replaced.items() if value and key not in HEAD]
    return "\n".join([*lines, head, DRAFTING, tail])


def make_kind(text: str | None = None, **changed: Any) -> Kind:
    """One kind as loaded, with fields of the model changed."""
    kind = load_policy(text or policy_text()).kinds["customer_email"]
    return kind.model_copy(update=changed)


def problems(text: str) -> list[str]:
    """The sentences about a file that must not load."""
    with pytest.raises(PolicyError) as caught:
        load_policy(text)
    return list(caught.value.problems)


def faulty_keys(text: str) -> set[str]:
    """The keys of the kind that those sentences begin with."""
    return {problem.removeprefix("kinds.customer_email.").split(" ")[0] for problem in problems(text)}
