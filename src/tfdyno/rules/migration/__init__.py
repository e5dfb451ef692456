"""What in a project's own files does not fit the TensorFlow at hand, by syntax tree.

Others use ``bindings``, ``check``, ``hits``, ``order``, ``parse``, ``project``, ``sites``,
``walk``; the rest is private.
"""
