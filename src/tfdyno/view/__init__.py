"""Nouns as text, HTML and figures; nothing here computes time or reads files."""
