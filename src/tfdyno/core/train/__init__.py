"""Nouns of training and tuning."""
