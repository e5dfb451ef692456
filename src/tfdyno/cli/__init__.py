"""Arguments to jobs to views: one file per command, no arithmetic.

Others use ``main``, ``progress``; the rest is private.
"""
