"""Fits the constants of the time model to published measurements and says how good they are."""
