"""Diagnoses in words."""
