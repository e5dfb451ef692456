"""A training with Keras' own ``fit``: its loop, its watch, its end."""
