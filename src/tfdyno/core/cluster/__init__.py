"""Nouns of clusters and launches."""
