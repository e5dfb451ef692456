"""Measurements: of a run, of two in turns, of a server, of a card."""
