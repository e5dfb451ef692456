"""Causes found in logs."""
