"""Programs that XLA has optimised, read as kernels and buffers.

Others use ``kernels``, ``plan``, ``text``; the rest is private.
"""
