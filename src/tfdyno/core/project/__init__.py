"""Nouns of projects and their steps."""
