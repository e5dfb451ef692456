"""A model exported, and compared with what it was made from.

Others use ``child``, ``torch``; the rest is private.
"""
