"""The story of one event, one file a step.

Not here: what wakes a step (bot/doors) or the rules it applies (bot/policy).
"""
