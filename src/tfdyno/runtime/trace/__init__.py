"""A train step as StableHLO, and its kernels by the quick route."""
