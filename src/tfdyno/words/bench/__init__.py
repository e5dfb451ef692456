"""Measurements, comparisons and load tests in words."""
