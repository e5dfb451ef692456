"""A training with Keras' own ``fit``: its loop, its watch, its end.

Others use ``after_fit``, ``child``, ``fit``, ``load``, ``loop``, ``nan``, ``outcome``, ``session``,
``watch``; the rest is private.
"""
