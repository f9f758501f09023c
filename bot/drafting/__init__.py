"""Drafting: the model is asked, its answer read without trust, checked, repaired within bounds.
Not here: when a run is drafted and what is stored (bot/flow/draft), the kind's rules (bot/policy/rules).
"""
