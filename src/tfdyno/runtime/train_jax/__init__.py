"""A training on Keras' JAX backend.

Others use ``child``; the rest is private.
"""
