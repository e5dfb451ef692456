"""The kernels of a step that a framework runs operation by operation."""
