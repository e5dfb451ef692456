"""Data sets: measured, converted, verified.

Others use ``bench``, ``convert``, ``verify``; the rest is private.
"""
