"""A run watched from outside.

Others use ``telemetry``; the rest is private.
"""
