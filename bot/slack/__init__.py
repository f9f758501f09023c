"""The one holder of a Slack client: calls, their pace, and who a person is.

What a card looks like is in `bot/cards`; what wakes us from Slack is in `bot/doors`.
"""
