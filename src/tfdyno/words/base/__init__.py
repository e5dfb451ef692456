"""Amounts, lists and plurals."""
