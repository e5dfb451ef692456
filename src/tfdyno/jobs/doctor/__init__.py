"""Why TensorFlow does not use the GPU, and whether nodes can train together.

Others use ``cluster``, ``cluster_local``, ``doctor``, ``move``, ``to_jax``; the rest is private.
"""
