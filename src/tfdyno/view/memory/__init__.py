"""The memory of a step as text, JSON and a page.

Others use ``document``, ``page``, ``text``; the rest is private.
"""
