"""Measurements as text, JSON and pages."""
