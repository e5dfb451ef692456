"""The fastest recipe of a workload by measured trials.

Others use ``plan``, ``ray``, ``request``, ``tune``, ``write``; the rest is private.
"""
