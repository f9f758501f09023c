"""What people see in Slack: pure functions from one frozen view to Block Kit blocks.

No database, no client, no clock here: `flow/show` and the doors gather what a card needs and send it.
"""
