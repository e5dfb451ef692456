"""The sweep of a card: kernels of every kind, timed one by one, without a model.

Others use ``sweep``; the rest is private.
"""
