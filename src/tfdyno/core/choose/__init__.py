"""Nouns of choosing: hardware, programs, estimates, advice."""
