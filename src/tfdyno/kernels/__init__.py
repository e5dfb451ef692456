"""A train step as kernels and buffers of a GPU, which is the core of tfdyno; needs no framework."""
