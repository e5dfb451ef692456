"""The cards of this machine."""
