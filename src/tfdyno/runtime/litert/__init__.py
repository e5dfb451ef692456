"""Models as .tflite files: made, read and run.

Others use ``child``, ``convert``, ``make``, ``run``, ``signature``; the rest is private.
"""
