"""Exports, small devices and the model store as text, JSON and pages."""
