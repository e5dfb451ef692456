"""Processes of a training that find each other."""
