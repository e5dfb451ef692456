"""Source text changed in place."""
