"""Compile once: what a child compiles is kept, and its next start takes it from there.

Others use ``flags``, ``keeping``, ``store``; the rest is private.
"""
