"""The bot: everything that knows about events, drafts, people and Slack.
Not here: statements (sql/) and the code that speaks to PostgreSQL (store/).
"""
