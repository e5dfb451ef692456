"""Models as .tflite files: made, read and run.

Others use ``child``, ``convert``, ``make``, ``names``, ``run``, ``signature``; the rest is private.
"""
