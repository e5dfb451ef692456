"""A training on this machine."""
