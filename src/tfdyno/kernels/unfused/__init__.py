"""The kernels of a step that a framework runs operation by operation.

Others use ``per_op``, ``per_primitive``, ``tensorflow_ops``, ``tensorflow_step``; the rest is
private.
"""
