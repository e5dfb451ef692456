"""A recipe set on a model: its step, its strategy, its preprocessing."""
