"""Checkpoints of a training: what is in them, and how they are written.

Others use ``callbacks``, ``checkpoints``, ``files``, ``random_states``, ``state``, ``writing``; the
rest is private.
"""
