"""English: answers to clicks and commands, alerts to the operators. Between asterisks is bold.

Sentences of the cards are in `words_en`.
"""

from typing import Final

WORDS: Final[dict[str, str]] = {
    # Private answers to a click: what is so, then what to do.
    "refused.newer_revision": "There is a newer revision. Nothing was decided. Please read the card again.",
    "refused.asked_again": "This is asked anew since. Nothing was decided. Please read the card again.",
    "refused.expired": "Too late: this draft expired {at}. Nothing was decided.",
    "refused.approved": "Already approved by {who}, {at}.",
    "refused.rejected": "Already rejected by {who}, {at}.",
    "refused.cancelled": "Already cancelled by {who}, {at}.",
    "refused.superseded": "A newer event took the place of this draft. Nothing was decided.",
    "refused.blocked": "A newer draft is coming. Please decide on that one.",
    "refused.redrafting": "A new draft is being made. Please decide on that one.",
    "refused.undone": "Already being undone, asked for by {who}, {at}.",
    "refused.not_undoable": "This cannot be undone now. The card shows how it stands.",
    "refused.started": "Too late to cancel: sending has started.",
    "refused.settled": "This is already settled. The card shows how.",
    "refused.not_reviewer": "Only reviewers of this kind may decide. Nothing was decided.",
    "refused.not_qualified": (
        "This kind is regulated: only qualified reviewers may decide. Nothing was decided."
    ),
    "refused.guest": "Guests may not decide. Nothing was decided.",
    "refused.stranger": "Only members of this workspace may decide. Nothing was decided.",
    "refused.deactivated": "This account is deactivated. Nothing was decided.",
    "refused.bot": "Bots may not decide. Nothing was decided.",
    "refused.group_unreadable": "I cannot read the reviewers' group. Nothing was decided. Please try again.",
    "refused.unknown": ("I could not check who you are just now. Nothing was decided. Please try again."),
    "refused.requester": "You asked for this, so somebody else has to approve it.",
    "refused.editor": "You were the last to edit this draft, so somebody else has to approve it.",
    "refused.corrector": "You asked for this correction, so somebody else has to approve it.",
    "refused.already_voted": "Your approval already counts: {count} of {quorum} so far.",
    "refused.wrong_surface": "This button belongs to another message. Please use the card in the channel.",
    "refused.unknown_button": "This button is no longer valid. Please use the card in the channel.",
    "refused.kind_gone": "This kind is no longer in the policy, so nobody can decide on it.",
    "refused.none_waiting": "Nothing more waits here for you.",
    "refused.redrafts_used_up": "No more new drafts for this one. Please edit it, approve it or reject it.",
    "refused.not_editable": "No part of this draft can be edited in Slack. Please redraft it or reject it.",
    "refused.typed_wrong": "That is not the name above. Nothing was decided. Please type it as it stands.",
    "refused.not_admin": "Only admins may do this.",
    "refused.admins_unreadable": "I cannot read who the admins are. Nothing was changed. Please try again.",
    "refused.effect_moved": "This was settled or has changed in the meantime. The card shows how.",
    "refused.too_slow": "That took too long. Nothing was decided. Please try again.",
    "refused.not_known_yet": "Not known yet whether this was decided. The card will show it.",
    "refused.away": "The database is away. Nothing was decided. Please try again in a minute.",
    "refused.click_again": "Slack could not open the window in time. Please click again.",
    "refused.no_window": "Slack refused to open the window. Nothing was decided. Please tell your admins.",
    # Private answers to a click that counted.
    "done.approved": "Approved.",
    "done.voted": "Your approval counts: {count} of {quorum}.",
    "done.rejected": "Rejected. Nothing is sent.",
    "done.edited": "Saved as revision {revision}. It needs a new approval.",
    "done.unchanged": "Nothing was changed, so there is no new revision.",
    "done.redrafting": "The model is asked for a new draft.",
    "done.undoing": "It is being undone. The card says when that is confirmed.",
    "done.cancelled": "Cancelled. Nothing is sent.",
    "done.settled": "Recorded.",
    "modal.overtaken": "What you typed was not used. It stands below, so that you can copy it.",
    # What is wrong with an edited field; in Slack it stands at the field.
    "fault.required": "Please fill this in.",
    "fault.value": "This is not one of the possible values.",
    "fault.number": "Please write a number.",
    "fault.whole_number": "Please write a whole number.",
    "fault.shorter": "Please use at most {bound} characters.",
    "fault.longer": "Please use at least {bound} characters.",
    "fault.smaller": "This may be {bound} at most.",
    "fault.larger": "This must be {bound} at least.",
    "fault.form": "This does not have the form that is asked for.",
    "fault.one_line": "Please use one line: it becomes a mail header.",
    "fault.unsendable": "There is a character in this that cannot be sent.",
    "fault.other": "This does not fit what the kind allows.",
    "fault.elsewhere": "Another part of the draft does not fit ({name}): {what}",
    # Lines in a card's thread.
    "thread.revision": "Revision {revision} is here. The card above shows it.",
    "thread.edited": "Revision {revision}, edited by {who}. The card above shows it.",
    "thread.reminder": "Still waiting for a decision. Expires {expires}",
    "thread.reminded_again": "Still waiting for a decision, reminder {count}. Expires {expires}",
    "thread.escalated": "{who}: still waiting for a decision. Expires {expires}",
    "thread.escalated_there": "Still waiting for a decision in {where}: {kind} · {entity}. Expires {expires}",
    # Alerts in the operators' channel.
    "alert.payload_conflict": (
        "*Same key, other content.* {key} came again with different content. The first one stands."
        " Please mend the workflow: one key, one content."
    ),
    "alert.drafting_failed": "*No draft.* {key} could not be drafted ({reason}). {mend}",
    "alert.quota": "*Model quota used up.* {key} could not be drafted. Please check the model account.",
    "alert.budget": "*Daily tokens used up* for {scope}. Drafting goes on when the day turns.",
    "alert.takeovers": "*Workers keep dying* on {key}: taken over {count} times. Please read the logs.",
    "alert.channel_missing": (
        "*Channel not reachable:* {channel} ({reason}). Cards wait, and still expire. Invite the bot."
    ),
    "alert.card_refused": "*Slack refuses a card* of {key} ({reason}). The draft itself is safe.",
    "alert.unknown_first": "*Still unknown:* whether {key} was delivered, nobody can say since {at}."
    " Please look at the target, then decide on this card.",
    "alert.unknown_hour": "*An hour, and still unknown:* {key}. Newer events of this record wait behind it.",
    "alert.unknown_hours": "*Four hours, and nobody decided:* {key}. {admins}: no machine will decide this.",
    "alert.unknown_day": "*A day or more, and still unknown:* {key}. {admins}: until one of you decides,"
    " nothing more of this record is drafted or sent.",
    "alert.earned_lost": "*Back to approval first:* {kind} no longer earns exceptions ({reason} unedited)."
    " Look at what people changed, and mend its prompt or rules; enough unedited approvals earn it again.",
    "alert.effect_failed": "*Not sent:* {key} ({because}). It was let out, and nothing more is tried;"
    " only a newer event makes another draft.",
    "alert.undo_failed": "*Not undone:* {key} ({because}). Nothing more is tried;"
    " it can be asked for again on the card, or please take it back at the target by hand.",
    "alert.resume_failed": "*Not told:* whoever waits upstream for {key} ({because}). Nothing more is tried;"
    " please let the execution go on by hand. `GET /runs` has the outcome.",
    "alert.resume_away": "*Not told:* whoever waits upstream for {key}, and perhaps for others ({because})."
    " Nothing more is tried; please let the executions go on by hand. `GET /runs` has the outcomes.",
    "alert.arrived_late": "*Arrived after all:* {key}. It had been given up, or dropped for a newer version;"
    " only now its target's confirmation came in.",
    "alert.effect_held": "*Held:* {key} waits, since its record cannot be checked ({reason})."
    " So does whatever else of {kind} is due. It is asked again by itself; please look at its `probe`.",
    "alert.limits_hold": "*Held back:* {key} of {kind} cannot leave ({because}).",
    "alert.cap_full": "*Cap reached* for {kind}: {because}. What waits goes on {at}.",
    "alert.target_resting": (
        "*Not answering:* {target} ({kind}), {count} failures in a row. It is left in peace; next try {at}"
    ),
    "alert.target_back": "*Answering again:* {target} ({kind}). What waited goes out.",
    "alert.step_failed": "*A background step fails:* {step} ({reason}). It is tried again.",
    "alert.switch_closed": "*Kill switch on* for {scope}, by {who}. Reason: {reason}",
    "alert.switch_opened": "*Kill switch off* for {scope}, by {who}. Reason: {reason}",
    "mend.misconfigured": "Run `doctor` to see which setting is wrong.",
    "mend.invalid": "Look at it with `/stet show`.",
    "mend.refused": "The model refused. Only a newer event makes another draft.",
    "mend.retries": "It was tried often enough. Only a newer event makes another draft.",
    # Slash commands.
    "help.title": "*Stet lets drafts out once: approved by a person, or as the policy allows.*",
    "help.queue": "`/stet queue` what waits for you",
    "help.show": "`/stet show KEY` the history of one key",
    "help.status": "`/stet status` switch, queue and health",
    "help.kill": "`/stet kill [SCOPE] REASON` stop sending",
    "help.resume": "`/stet resume [SCOPE] REASON` go on sending",
    "help.unknown": "`/stet unknown` sent or not? Nobody knows yet",
    "help.scopes": "SCOPE is `all`, `llm`, `kind:NAME` or `effect:TYPE`.",
    "usage.unknown_word": "I do not know “{word}”.",
    "usage.key_missing": "Please name the key: `/stet {command} KEY`",
    "usage.reason_missing": "Please give a reason: `/stet resume [SCOPE] REASON`",
    "usage.scope_unknown": "There is no {scope}, so nothing was changed. Known: {known}",
    "usage.key_unknown": "I have never seen {key}.",
    "usage.later": "`/stet {command}` comes with a later version.",
    "usage.not_known": "I do not know yet whether that worked. `/stet status` shows how things stand.",
    "usage.members_only": "Only full members of this workspace may use this.",
    "status.open": "*🟢 Sending is on.*",
    "status.setting_off": "*🔴 Sending is off:* `AI_ACTIONS_ENABLED` is not `true`.",
    "status.row_missing": (
        "*🔴 Sending is off:* the switch has no row. `/stet resume all REASON` makes it again."
    ),
    "status.closed": "*🔴 Stopped:* {scope}, by {who}, {at}. Reason: {reason}",
    "status.resting": "🟠 {target} ({kind}) is not answering. Next try: {at}",
    "status.full": "🟠 {kind} waits for its cap. Goes on {at}.",
    "status.cap_hour": "{kind}: {used} of {most} this hour (UTC)",
    "status.cap_day": "{kind}: {used} of {most} today (UTC)",
    "status.cap_value_day": "{kind}: worth {used} of {most} today (UTC)",
    "status.counts": (
        "Waiting for people: {waiting} · to be sent: {queued} · sending: {sending} · unknown: {unknown}"
    ),
    "queue.title": "*Waiting for you: {count}*",
    "queue.empty": "No draft waits for you.",
    "queue.not_whole": (
        "I cannot read every group of reviewers just now, so more may wait for you than I can show."
        " Please try again in a minute."
    ),
    "queue.line": "• {kind} · {entity} · since {since}, expires {expires}",
    "queue.line_open": "• {kind} · {entity} · since {since}",
    "queue.kind": "{kind}: {count}",
    "queue.more": "and {count} more",
    "queue.card": (
        "*More waiting in this channel: {count}.* They get their card as the open ones are decided. "
        "`/stet queue` lists yours."
    ),
    "queue.card_empty": "Nothing waits behind the cards of this channel.",
    # App Home.
    "home.page": "page {page} of {pages}",
    "home.next": "Next page",
    "home.before": "Previous page",
    "home.read_first": "There is more to read before it can be approved.",
    "home.decided": "*You decided lately*",
    "home.did.approve": "• You approved {what}, {at}",
    "home.did.reject": "• You rejected {what}, {at}",
    "home.week.events": (
        "*Last 7 days.* Events: {accepted} · repeated: {duplicates} · stale: {stales}"
        " · conflicts: {conflicts}"
    ),
    "home.week.decisions": "Approved: {approved} · rejected: {rejected} · expired: {expired}",
    "home.week.effects": "Sent: {sent} · failed: {failed}",
    "home.unknown": "*Nobody knows whether these were sent: {count}*",
    "home.unknown_since": "Unknown since {at}",
    "show.title": "*{key}*",
    "show.state": "{state} · received {at}",
    "show.failure": "Why: {reason}",
    "show.repeats": "Came again and was not handled again: {count}",
    "show.draft": "Revision {revision}, by {who}",
    "show.model": "Drafted by model {model}, prompt {version}",
    "show.decision": "Decision: {decision}, by {who}, {at}",
    "show.reason": "Reason: {reason}",
    "show.undo": "Undo of {name} by {who}, {type}: {state}",
    "show.waits": "Effect {type}: {state}, waits for {name}",
    "show.effect": "Effect {type}: {state}",
    "show.effect_as": "Effect {type}: {state}. Provider's id: {id}",
    "show.line": "{at} · {who} · {action}",
    "unknowns.title": "*Nobody knows whether these were sent: {count}*",
    "unknowns.line": "{key} · {type} · since {since}",
    "unknowns.where": "Their cards are in the operators' channel.",
    "kill.done": "*🔴 Stopped:* {scope}. No further send starts.",
    "kill.done_llm": "*🔴 Stopped:* {scope}. The model is asked for no further draft.",
    "kill.already": "*🔴 Already stopped:* {scope}.",
    "kill.in_flight": "Started before and not ended: {count}",
    "kill.line": "• {key}",
    "kill.none_in_flight": "Nothing is on its way.",
    "kill.ask_reason": "Please add why: `/stet kill {scope} REASON`",
    "switch.reason_cut": "Your reason is long: its first {count} characters are kept.",
    "resume.done": "*🟢 Resumed:* {scope}.",
    "resume.already": "*🟢 Was not stopped:* {scope}.",
    "resume.still_closed": "Still stopped: {scopes}",
    "resume.not_allowed": "You may pull the switch, but only an admin may release it. Please ask one.",
    "rerun.done": "{key} is tried again under the same key.",
    "rerun.final": "{key} is {state}: it is never replayed. You can correct it with a new event.",
    "rerun.waiting": "{key} waits for a person. Nothing to run again.",
    "rerun.approved": "{key} is approved and on its way. It is never replayed.",
    "rerun.unsettled": "{key} has an effect that is not settled. Please settle it first: `/stet unknown`",
    "unknown.none": "No effect is unknown.",
    "erase.done": "Erased the content of {entity}: {count} runs. The record still verifies.",
    "erase.exempt": "Kept for now, still open or unknown: {count}",
    "erase.nothing": "There is nothing about {entity}.",
    # The doctor's test card.
    "rehearsal.ask": "*Does a click reach me?* Please press this button within a minute.",
    "rehearsal.arrived": "*✅ The click arrived.* It was pressed by {who}.",
    "rehearsal.missed": "*⌛ No click arrived.* The doctor says how to mend it.",
    "usage.rehearsing": "Stet is being tested just now. Please try again in a minute.",
}
