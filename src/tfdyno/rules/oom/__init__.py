"""Reports of exhausted memory, read.

Others use ``draft``, ``report``, ``words``; the rest is private.
"""
