"""Nouns, units, errors and the one codec. Imports nothing of tfdyno."""
