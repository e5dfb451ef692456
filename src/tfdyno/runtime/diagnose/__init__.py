"""A look at a training: where the time of its steps goes.

Others use ``child``, ``held``, ``host``, ``input``, ``look.fits``, ``stages``, ``waits``; the rest
is private.
"""
