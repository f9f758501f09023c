"""The arithmetic of Slack's limits; time is a number here."""

from bot.slack.answer import SlackLimited, SlackOk
from bot.slack.pace import REMEMBERED, TIER_3, Limit, Pace


# One post a second in a channel, and another channel need not wait for it.
def test_one_post_a_second_and_channel() -> None:
    pace = Pace()
    assert pace.take("chat.postMessage", channel="C1", now=10.0) == 0.0
    assert pace.take("chat.postMessage", channel="C1", now=10.25) == 0.75
    assert pace.take("chat.postMessage", channel="C2", now=10.25) == 0.0
    assert pace.take("chat.postMessage", channel="C1", now=11.0) == 0.0


# Whoever must wait has spent nothing.
def test_waiting_spends_nothing() -> None:
    pace = Pace({"m": (Limit(per_minute=60, burst=1),)})
    pace.take("m", now=0.0)
    assert [pace.take("m", now=0.5) for _ in range(5)] == [0.5] * 5
    assert pace.take("m", now=1.0) == 0.0


# However the calls are spread, no minute sees more than the tier allows.
def test_no_minute_above_the_tier() -> None:
    pace = Pace()
    passed = [
        tick / 10 for tick in range(3000) if pace.take("chat.update", channel="C1", now=tick / 10) == 0.0
    ]
    most = max(sum(start <= at < start + 60 for at in passed) for start in passed)
    assert most <= TIER_3.per_minute
    assert len(passed) > 4 * (TIER_3.per_minute - TIER_3.burst)


# The workspace's limit on posts holds over all channels together.
def test_posts_over_all_channels() -> None:
    pace = Pace()
    passed = [
        number for number in range(300) if not pace.take("chat.postMessage", channel=f"C{number}", now=0.0)
    ]
    assert len(passed) == 20


# Retry-After on a post holds its channel; a second channel held at once means the workspace is held.
def test_retry_after_on_posts() -> None:
    pace = Pace()
    pace.hold("chat.postMessage", channel="C1", now=0.0, seconds=30.0)
    assert pace.wait_seconds("chat.postMessage", channel="C1", now=10.0) == 20.0
    assert pace.wait_seconds("chat.postMessage", channel="C2", now=10.0) == 0.0
    pace.hold("chat.postMessage", channel="C2", now=10.0, seconds=5.0)
    assert pace.wait_seconds("chat.postMessage", channel="C3", now=10.0) == 5.0


# Retry-After on any other method holds that method everywhere, and no other method.
def test_retry_after_on_other_methods() -> None:
    pace = Pace()
    pace.heard("chat.update", SlackLimited(12.0), channel="C1", now=0.0)
    pace.heard("chat.update", SlackOk({}), channel="C1", now=1.0)
    assert pace.wait_seconds("chat.update", channel="C2", now=2.0) == 10.0
    assert pace.wait_seconds("views.publish", now=2.0) == 0.0


# A shorter Retry-After never shortens a longer one.
def test_longest_hold_wins() -> None:
    pace = Pace()
    pace.hold("chat.update", now=0.0, seconds=30.0)
    pace.hold("chat.update", now=1.0, seconds=2.0)
    assert pace.wait_seconds("chat.update", now=10.0) == 20.0


# Channels that hold nobody back any more are forgotten.
def test_memory_is_bounded() -> None:
    pace = Pace({"m": (Limit(per_minute=60, burst=1, by_channel=True),)})
    for number in range(3 * REMEMBERED):
        pace.take("m", channel=f"C{number}", now=float(number))
    assert len(pace._next) <= REMEMBERED + 1
