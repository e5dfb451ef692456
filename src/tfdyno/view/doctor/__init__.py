"""Findings about machines and clusters in words."""
