"""A model exported, and compared with what it was made from.

Others use ``child``, ``torch``, ``transformers``; the rest is private.
"""
