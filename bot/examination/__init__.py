"""What the doctor tries on the real thing, a file a part of the outside.

The order of the parts and the exit code are in `bot/doctor`.
"""
