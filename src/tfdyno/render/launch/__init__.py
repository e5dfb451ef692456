"""A launch plan in the words of each engine.

Others use ``local``, ``ray``; the rest is private.
"""
