"""The file that a project begins with."""
