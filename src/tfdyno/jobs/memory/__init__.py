"""Where the memory of a step goes, and how to make it fit.

Others use ``fitting_batch``, ``weigh``; the rest is private.
"""
