"""The time and memory of a step, from its kernels."""
