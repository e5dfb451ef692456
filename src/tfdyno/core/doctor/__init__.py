"""Nouns of machines and of what is wrong with them."""
