"""Nouns of recipes: every setting of a training."""
