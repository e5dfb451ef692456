"""What in a project's own files does not fit the TensorFlow at hand, by syntax tree.

Others use ``check``, ``sites``, ``walk``; the rest is private.
"""
