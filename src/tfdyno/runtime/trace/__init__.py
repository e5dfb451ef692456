"""A train step as StableHLO, and its kernels by the quick route.

Others use ``bridge``, ``child``, ``count``, ``memory_map``, ``stablehlo``; the rest is private.
"""
