"""Picks, offers, changes and explanations in words."""
