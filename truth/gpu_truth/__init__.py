"""Measures training and inference steps on a real card; needs Keras, NumPy and a framework only.

The parent (``main``, ``drive``) needs Python's standard library alone; every step runs in a process
of its own (``measure_one``). Nothing here imports tfdyno.
"""
