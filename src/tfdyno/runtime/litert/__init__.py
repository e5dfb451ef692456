"""Models as .tflite files: made, read and run."""
