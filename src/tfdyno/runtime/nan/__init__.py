"""Where a number was lost in a training.

Others use ``locator``, ``look``, ``words``; the rest is private.
"""
