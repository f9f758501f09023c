"""What of a draft may be edited in a form, in the order in which its card shows it.

Ground of open, edit and drawing. Not here: how a field is asked for (bot/policy/editing).
"""

from collections.abc import Mapping
from typing import Any

from bot.cards.draft import fields_of
from bot.cards.modals import can_edit
from bot.policy.editing import Form, make_form
from bot.policy.snapshot import may_edit, recipients_of


def form_of(body: Mapping[str, Any], snapshot: Mapping[str, Any]) -> Form:
    """Lay out the form of a revision by the policy that is frozen with it.

    A field that the schema names and the revision does not have may be filled in, too.
    """
    schema = snapshot.get("output") or {}
    described = schema.get("properties")
    missing = sorted(set(described) - set(body)) if isinstance(described, Mapping) else []
    draft, labels = fields_of(body)
    recipients = recipients_of(snapshot)
    names = [
        name
        for name in (*(field.name for field in (*draft, *labels)), *missing)
        if may_edit(name, snapshot.get("editable"), recipients)
    ]
    return make_form(body, schema, names, fits=can_edit)
