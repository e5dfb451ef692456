"""Arguments to jobs to views: one file per command, no arithmetic.

Others use ``backend_options``, ``main``, ``progress``; the rest is private.
"""
