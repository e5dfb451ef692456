"""The steps of a project, run and reported.

Others use ``live``, ``report``, ``results``, ``run``, ``runs``, ``runs_removal``, ``start``,
``walk``; the rest is private.
"""
