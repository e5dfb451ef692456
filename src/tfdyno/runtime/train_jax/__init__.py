"""A training on Keras' JAX backend."""
