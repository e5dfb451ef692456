"""What of a script stops the move to Keras' JAX backend, and what is written instead.

Others use ``project``, ``rewrite``; the rest is private.
"""
