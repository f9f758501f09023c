"""One line of the doctor's, and the words of what Slack answered.

Not here: what is examined (the other files of this room).
"""

from dataclasses import dataclass

from bot.slack.answer import SlackAnswer, SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: `mend` says what is wrong and how to mend it, and is empty where all is well."""

    what: str
    mend: str = ""

    def __str__(self) -> str:
        """One line for people."""
        return f"wrong  {self.what}: {self.mend}" if self.mend else f"ok     {self.what}"


def word_of(answer: SlackAnswer) -> str:
    """Slack's own word where it refuses, else that it cannot be reached and why."""
    match answer:
        case SlackOk():
            return "ok"
        case SlackRefused(error="missing_scope", needed=needed):
            return f"missing_scope ({', '.join(needed)})"
        case SlackRefused(error=word):
            return word
        case SlackLimited(retry_after_seconds=seconds):
            return f"Slack wants {seconds:.0f} s of quiet first"
        case SlackUnknown(reason=word) | SlackNotDelivered(reason=word):
            return f"Slack does not answer ({word})"
