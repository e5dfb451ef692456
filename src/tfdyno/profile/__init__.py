"""Profiles of TensorFlow and JAX, read as steps and their parts; needs no framework."""
