"""Projects as text, JSON and one page.

Others use ``document``, ``page``, ``run_text``, ``text``; the rest is private.
"""
