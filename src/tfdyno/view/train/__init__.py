"""Trainings and tunings as text and JSON."""
