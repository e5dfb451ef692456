"""Measured and converted data sets as text and JSON."""
