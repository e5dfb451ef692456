"""Commands for projects.

Others use ``report``, ``run``, ``runs``; the rest is private.
"""
