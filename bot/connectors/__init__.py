"""Where an effect leaves us: one file an effect type, beside the ground files they stand on.

Not here: when an effect may leave (bot/flow/dispatch) or what follows from its outcome.
"""
