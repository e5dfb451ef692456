"""Reports of exhausted memory, read."""
