"""Measurements: of a run, of two in turns, of a server, of a card.

Others use ``bench``, ``calibrate``, ``compare``, ``container``, ``load``, ``measured_files``,
``run``, ``sides``; the rest is private.
"""
