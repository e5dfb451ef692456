"""A model behind HTTP.

Others use ``render``, ``render_vllm``, ``serve``, ``setup``; the rest is private.
"""
