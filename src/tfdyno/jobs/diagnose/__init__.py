"""What holds a training back, and the proof of what mends it.

Others use ``diagnose``, ``fixes``, ``profile``, ``recorded_run``, ``same_losses``, ``write``; the
rest is private.
"""
