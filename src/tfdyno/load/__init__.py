"""The client of a load test; needs no framework.

Others use ``child``; the rest is private.
"""
