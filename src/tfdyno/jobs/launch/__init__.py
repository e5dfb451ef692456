"""A training on several nodes, here or by an engine."""
