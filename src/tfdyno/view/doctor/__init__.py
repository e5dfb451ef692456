"""Findings about machines and clusters as text and JSON."""
