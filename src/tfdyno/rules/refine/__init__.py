"""Causes narrowed by the facts of a machine.

Others use ``memory``, ``refined``; the rest is private.
"""
