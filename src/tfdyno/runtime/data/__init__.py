"""The input pipeline of a workload, measured by itself.

Others use ``child``, ``convert.child``, ``convert.measure``; the rest is private.
"""
