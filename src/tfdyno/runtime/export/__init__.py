"""A model exported, and compared with what it was made from."""
