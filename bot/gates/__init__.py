"""When a person is asked: one file a mode, beside the contract.

Not here: who may decide (bot/policy/people) or what a decision does (bot/flow/decide).
"""
