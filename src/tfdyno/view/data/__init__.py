"""Measured and converted data sets in words."""
