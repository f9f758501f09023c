"""The bot: everything that knows about events, drafts, people and Slack.
Not here: statements (sql/) and the code that speaks to PostgreSQL (store/).
"""

from typing import Final

RELEASE: Final = "0.1.0"  # In the record of every event; pyproject.toml reads it from here.
