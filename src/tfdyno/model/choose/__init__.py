"""Decisions: cost, verdicts, the three picks."""
