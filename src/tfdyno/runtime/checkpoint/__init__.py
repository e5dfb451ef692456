"""Checkpoints of a training: what is in them, and how they are written."""
