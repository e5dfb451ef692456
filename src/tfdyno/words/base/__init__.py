"""Amounts, counts and lists."""
