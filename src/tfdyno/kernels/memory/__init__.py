"""What a step holds in memory over its course."""
