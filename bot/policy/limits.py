"""Every number that bounds or paces the bot, each with its argument.
Not here: what a kind's policy may set for itself (kinds), and what a wire contract fixes (bot/contracts).
"""

from typing import Final

# Events
MAX_EVENT_BYTES: Final = 256 * 1024  # SPEC section 3; a long mail with its thread is a tenth of it.
SIGNATURE_WINDOW_SECONDS: Final = 5 * 60  # Standard Webhooks' own tolerance, either side of our clock.
MAX_SIGNATURES: Final = 10  # Rotation needs two; each costs one comparison a secret.
MAX_INTAKE_WAITING: Final = (
    2000  # Some 0.3 s of work at the rate we hope for; more would wait past n8n's patience.
)
INTAKE_BATCH: Final = (
    100  # One transaction's worth: groups arrivals without making the first wait for the last.
)
INTAKE_SECONDS: Final = 5  # n8n's users set timeouts of 2 to 10 s; a 503 that comes later is read by nobody.
OVERLOAD_RETRY_AFTER_SECONDS: Final = (
    2  # The queue above drains in less; n8n waits 5 s at most and ignores it.
)
UNAVAILABLE_RETRY_AFTER_SECONDS: Final = (
    5  # A database fail-over takes a few seconds; n8n's longest wait is 5 s.
)

# Drafting
LEASE_SECONDS: Final = 60  # Three renewals may be missed before another worker takes over.
RENEW_SECONDS: Final = 20  # A third of the lease.
# How long work of a kind that our policy lacks is left to others: while policies change, another process has
# it, which may be busy drafting, and sends at once.
KIND_GONE_SECONDS: Final = 300
EFFECT_KIND_GONE_SECONDS: Final = 15
PROCESSING_SECONDS: Final = (
    30 * 60
)  # All tries and repairs of one claim; past it the owner itself is the fault.
TAKEOVERS_ALERT: Final = 3  # Twice can be deploys in a row; three times somebody should look.
TAKEOVERS_FAIL: Final = 5  # Whatever kills its worker five times will kill the sixth.
DRAFT_BACKOFF_SECONDS: Final = (
    60,
    300,
    900,
    3600,
)  # SPEC section 4: 1, 5, 15, 60 min bridge an outage of 80 min.
MAX_REPAIRS: Final = (
    2  # A model that misses three times with its fault shown will miss a fourth (SPEC section 6).
)
MODEL_TIMEOUT_SECONDS: Final = 60  # Default of a kind: a long reasoning answer fits, a hung one is noticed.
MAX_MODEL_TIMEOUT_SECONDS: Final = 300  # Two tries of an answer and of two repairs fill PROCESSING_SECONDS.
MODEL_MAX_TOKENS: Final = (
    4000  # Default of a kind: a long mail and some reasoning; truncation counts as a fault.
)
REDRAFTS: Final = 3  # Default of a kind: whoever asks a fourth time is quicker writing it.
MAX_REDRAFTS: Final = 20  # Each costs tokens, and a card with twenty revisions is read by nobody.
REDRAFT_SECONDS: Final = 10 * 60  # SPEC section 4; people wait in front of it.
MAX_MODEL_WORKERS: Final = 8  # Calls at once a process: far under the rate limits of small accounts.

# Effects
EFFECT_LEASE_EXTRA_SECONDS: Final = (
    30  # On top of the timeout: connect, commit and a slow answer's recording.
)
EFFECT_TIMEOUT_SECONDS: Final = 10  # Default of a kind (SPEC section 7).
MAX_EFFECT_TIMEOUT_SECONDS: Final = (
    300  # n8n's own default timeout; a lease longer than that hides dead owners.
)
EFFECT_ATTEMPTS: Final = 5  # Default of a kind (SPEC section 7).
MAX_EFFECT_ATTEMPTS: Final = 20  # At the longest backoff that is most of a day.
# Quick first, for blips; then so that five tries outlast a target's restart and a mail server's greylist
# (RFC 6647: minutes); an hour at most, so that what mends overnight is sent by morning. The last repeats.
EFFECT_BACKOFF_SECONDS: Final = (1, 10, 60, 300, 900, 3600)
RETRY_AFTER_FLOOR_SECONDS: Final = 1  # A provider that says 0 would be hammered.
RETRY_AFTER_CAP_SECONDS: Final = 3600  # A provider that says a week would freeze an approved effect unseen.
SETTLE_SECONDS: Final = (
    60  # Default of a kind: providers show what they took within a minute (SPEC section 7).
)
MAX_SETTLE_SECONDS: Final = 24 * 3600  # Longer, and a person knows better than any look-up.
RESUME_DELAY_SECONDS: Final = (
    2  # n8n answers 409 until its Wait node is reached, after our answer (SPEC section 3).
)
# Effects a claim, and answers a record: 200 halve what 50 cost a row, more gain nothing (facts of the bench).
CLAIM_BATCH: Final = 200
LANE_SLOTS: Final = 16  # Open sends a lane to begin with: sixty hung targets fit into EFFECTS_IN_FLIGHT.
LANE_LEAST_SLOTS: Final = 4  # What a slow or failing target keeps: enough to notice that it is well again.
LANE_STEADY_SLOTS: Final = 32  # What a healthy target may have: as many as connectors/exchange opens to one.
LANE_QUICK_SLOTS: Final = 800  # What one that answers at once may have: batches at every stage of the way.
QUICK_SEND_SECONDS: Final = 0.02  # "At once": no target across a network with a queue answers like this.
SLOW_SEND_SECONDS: Final = 1.0  # From here on a card says "sending", and the target gets fewer at a time.
EFFECTS_IN_FLIGHT: Final = 1000  # In all: a few kilobytes each, and sockets stay under the usual 1,024.
RELEASE_WAIT_SECONDS: Final = 1.0  # What could not start is not claimed again in a tight loop.
OUTDATED_WAIT_SECONDS: Final = (
    60.0  # What may never start waits for the end of another effect, which ends it too.
)
PROBE_TIMEOUT_SECONDS: Final = 5  # A record is read quickly; what takes longer is asked again later.
MAX_PROBE_TIMEOUT_SECONDS: Final = 15  # Half of what the lease has beyond the call that follows.
HOLD_LEAST_SECONDS: Final = 5.0  # Until a record that could not be checked is asked for again: a blip,
HOLD_MOST_SECONDS: Final = 300.0  # doubled up to what people accept after an outage.
SEND_MARGIN_SECONDS: Final = 1.0  # A connector keeps its timeout itself; this catches one that does not.
MAX_EFFECTS: Final = 5  # Of one kind: one person reads them all on one card, and answers for all.
# When people are told again of an unknown effect, after the settle window: seldom enough not to be muted.
UNKNOWN_RISES_SECONDS: Final = (3600, 14_400, *range(86_400, 31 * 86_400, 86_400))
LOOK_UP_BATCH: Final = 20  # Unknown effects asked about at once.
LOOK_UP_SECONDS: Final = 30  # Longest wait for one look-up; people look at the card meanwhile.
# After a look-up that proved nothing: a late arrival shows within minutes, a person comes within hours.
LOOK_UP_BACKOFF_SECONDS: Final = (60, 300, 900, 3600, 4 * 3600)
RECOVERY_BATCH: Final = 200  # Lost leases, and withdrawals, a transaction: locks are held for milliseconds.
# A kind's [limits]
MOST_LIMITED: Final = 1_000_000  # Of any count in it: more is a typing error, and an integer of the database.
MOST_VALUE: Final = 1e15  # A float still tells cents apart there, and no day of any company is worth more.
BREAKER_AFTER: Final = (
    50  # Default: ten effects that fail all their five tries; blips and bad single ones stay below.
)
BREAKER_REST_SECONDS: Final = 30  # Default: a restarted target is back by then.
BREAKER_REST_MOST_SECONDS: Final = 15 * 60  # Default: what was mended is noticed while somebody still looks.
MAX_BREAKER_REST_SECONDS: Final = 24 * 3600  # Longer, and approvals grow stale behind a target that is well.
HELD_SECONDS: Final = 3600  # What fits into no window is looked at again: the policy may have changed.
LOOK_AHEAD: Final = (
    100  # Waiting effects of a value cap that are read for ones that fit: each costs reading its body.
)
STOP_GRACE_SECONDS: Final = 8  # SPEC section 4; Docker kills after 10 s.
CANCEL_WINDOW_SECONDS: Final = 600  # Default of the gate `delayed`: to read one card and to press one button.

# Clicks and cards
CLICK_BUDGET_SECONDS: Final = 2.5  # Slack waits 3 s; half a second is left for the way.
MAX_OPEN_CARDS: Final = 30  # Default of a kind: more than a channel's people can read in a day.
TOKEN_BYTES: Final = 32  # 256 bits (SPEC section 8).

# Clock
EXPIRES_AFTER_SECONDS: Final = 48 * 3600  # Default of a kind: over a weekend's first day (SPEC section 7).
FRESH_FOR_SECONDS: Final = (
    24 * 3600
)  # Default of a kind: yesterday's approval may not fit today (SPEC section 7).
MAX_DURATION_SECONDS: Final = (
    10 * 365 * 86400
)  # Ten years: a typing error beyond it, and an interval still fits.

# Keeping
RETENTION_SECONDS: Final = 365 * 86400  # Content is kept a year: longer than most disputes last.
LEAST_RETENTION_SECONDS: Final = (
    86400  # Under a day, a draft could lose its text while people still talk of it.
)
