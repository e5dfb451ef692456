"""Scripts that train with Horovod: what they become without it, and where it can be kept.

Others use ``keep``, ``rewrite``; the rest is private.
"""
