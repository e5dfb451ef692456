"""Parts of a model computed again in the backward pass to save memory.

Others use ``rewrite``; the rest is private.
"""
