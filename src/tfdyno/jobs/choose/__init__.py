"""Which card, offer and cluster for a model: trace, estimate, advise.

Others use ``advise``, ``estimate``, ``exact``, ``foretold``, ``gap``, ``market``, ``options``,
``predict``, ``reference``, ``serving_measured``, ``serving_size``, ``trace``, ``verify``; the rest
is private.
"""
