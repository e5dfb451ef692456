"""What of a script stops the move to Keras' JAX backend, and what is written instead.

Others use ``judge``, ``rewrite``, ``tables``; the rest is private.
"""
