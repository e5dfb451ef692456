"""The steps of a project, run and reported.

Others use ``report``, ``run``, ``runs``, ``runs_removal``, ``start``; the rest is private.
"""
