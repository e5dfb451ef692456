"""Profiles of TensorFlow and JAX, read as steps and their parts; needs no framework.

Others use ``child``, ``operations``, ``planes``, ``timeline``; the rest is private.
"""
