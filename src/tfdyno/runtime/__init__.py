"""What child processes run that imports TensorFlow, Keras or JAX."""
