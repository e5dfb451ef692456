"""Data sets: measured, converted, verified."""
