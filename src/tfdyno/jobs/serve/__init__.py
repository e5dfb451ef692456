"""A model behind HTTP.

Others use ``render``, ``serve``, ``setup``; the rest is private.
"""
