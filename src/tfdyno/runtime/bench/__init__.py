"""One run of a bench: steps timed from inside.

Others use ``all_reduce``, ``child``, ``clock``, ``fit``, ``loop``, ``losses``, ``script_training``;
the rest is private.
"""
