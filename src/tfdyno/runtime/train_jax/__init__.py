"""A training on Keras' JAX backend.

Others use ``child``, ``start``; the rest is private.
"""
