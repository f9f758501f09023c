"""Shapes that cross our border: events, clicks, provider outcomes, error bodies.
Not here: what may be done with them, which is decided in bot/policy and bot/flow.
"""
