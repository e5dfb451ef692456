"""Why TensorFlow does not use the GPU, and whether nodes can train together."""
