"""A serving plan in the words of each server.

Others use ``images``, ``triton``; the rest is private.
"""
