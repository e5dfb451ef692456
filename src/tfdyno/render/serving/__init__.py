"""A serving plan in the words of each server."""
