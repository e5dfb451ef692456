"""Commands for what was trained: export, edge, models, serve.

Others use ``edge``, ``export``, ``models``, ``serve``; the rest is private.
"""
