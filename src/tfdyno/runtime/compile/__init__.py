"""A traced step compiled by XLA for a GPU that is not there.

Others use ``child``, ``sharded``; the rest is private.
"""
