"""Why TensorFlow does not use the GPU, and whether nodes can train together.

Others use ``cluster``, ``cluster_local``, ``doctor``; the rest is private.
"""
