"""Settle by a compile what an estimate leaves open, where that can change an answer."""
