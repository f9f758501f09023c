"""What wakes the steps: HTTP, Slack, NOTIFY and the clock.

Not here: what a step does (bot/flow).
"""
