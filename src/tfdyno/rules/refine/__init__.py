"""Causes narrowed by the facts of a machine."""
