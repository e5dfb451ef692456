"""The kernels of a step that a framework runs operation by operation.

Others use ``per_op``, ``per_primitive``, ``tensorflow_dilation``, ``tensorflow_ops``,
``tensorflow_rules``; the rest is private.
"""
