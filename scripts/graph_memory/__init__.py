"""Measures the memory of TensorFlow's graph mode and scores estimates of it against that."""
