"""The only code that imports TensorFlow, Keras or JAX; always in a child process."""
