"""Measured input pipelines in words."""
