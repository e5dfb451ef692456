"""The steps of a project, run and reported.

Others use ``report``, ``results``, ``run``, ``runs``, ``runs_removal``, ``start``; the rest is
private.
"""
