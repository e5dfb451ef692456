"""Trainings and tunings in words."""
