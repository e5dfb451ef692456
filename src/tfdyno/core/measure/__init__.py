"""Nouns of measuring and diagnosing."""
