"""The local web app: a page whose every figure is the answer of a command.

Others use ``server``; the rest is private.
"""
