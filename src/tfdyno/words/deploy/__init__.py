"""Exports and small devices in words."""
