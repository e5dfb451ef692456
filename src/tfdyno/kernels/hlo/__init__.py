"""Programs that XLA has optimised, read as kernels and buffers."""
