"""The store: the only code that speaks to PostgreSQL.
Not here: the statements themselves (sql/) and anything that knows about the bot.
"""
