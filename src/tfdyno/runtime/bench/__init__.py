"""One run of a bench: steps timed from inside.

Others use ``all_reduce``, ``child``, ``fit``, ``loop``, ``losses``, ``on_jax``,
``script_training``;
the rest is private.
"""
