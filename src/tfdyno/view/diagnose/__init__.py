"""Diagnoses as text, JSON and pages."""
