"""Rules that need no waiting: limits, keys, signatures, who may decide, what a kind allows.
Not here: clocks, databases, networks; callers bring the facts.
"""
