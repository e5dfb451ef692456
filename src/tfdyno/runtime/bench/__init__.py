"""One run of a bench: steps timed from inside.

Others use ``all_reduce``, ``child``, ``fit``, ``loop``, ``losses``, ``script_training``;
the rest is private.
"""
