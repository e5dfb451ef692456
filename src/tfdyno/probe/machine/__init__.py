"""The machine as facts."""
