"""Facts of this machine, found without importing TensorFlow."""
