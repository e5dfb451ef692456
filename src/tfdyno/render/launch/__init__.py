"""A launch plan in the words of each engine."""
