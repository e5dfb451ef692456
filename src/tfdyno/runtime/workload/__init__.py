"""From what a user names to a model, its data and its call of ``fit``."""
