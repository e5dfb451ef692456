"""A training on Keras' JAX backend.

Others use ``child``, ``place``, ``start``; the rest is private.
"""
