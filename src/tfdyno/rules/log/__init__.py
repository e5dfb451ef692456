"""Causes found in logs.

Others use ``explained``, ``matches``, ``slot``, ``text``; the rest is private.
"""
