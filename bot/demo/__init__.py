"""Everything pretend: stand-ins for Slack, the model and the outside world, for the demo and the tests.

Nothing outside this room imports it.
"""
