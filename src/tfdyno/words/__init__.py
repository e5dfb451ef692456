"""Sentences and amounts made of nouns, which jobs and views share; no page, no terminal."""
