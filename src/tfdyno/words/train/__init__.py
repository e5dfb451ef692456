"""Tunings in words."""
