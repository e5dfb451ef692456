"""A run watched from outside."""
