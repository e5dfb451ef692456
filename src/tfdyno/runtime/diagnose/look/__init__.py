"""Looks at a training that go beyond its own steps: other calls of its step, fit after fit."""
