"""Commands for training data.

Others use ``data``; the rest is private.
"""
