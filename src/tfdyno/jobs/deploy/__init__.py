"""Models for elsewhere: exported, fitted to small devices, kept by version.

Others use ``edge``, ``export``, ``model_reference``, ``model_source``, ``models``; the rest is
private.
"""
