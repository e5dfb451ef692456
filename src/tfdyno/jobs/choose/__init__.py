"""Which card, offer and cluster for a model: trace, estimate, advise.

Others use ``advise``, ``backends``, ``estimate``, ``exact``, ``foretold``, ``gap``, ``generate``,
``hub_preset``, ``market``, ``options``, ``predict``, ``reference``, ``scale_out``,
``serving_measured``, ``serving_size``, ``trace``, ``verify``; the rest is private.
"""
