"""The process of one version of a served model.

Others use ``child``; the rest is private.
"""
