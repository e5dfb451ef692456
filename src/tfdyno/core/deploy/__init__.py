"""Nouns of exported, served and kept models."""
