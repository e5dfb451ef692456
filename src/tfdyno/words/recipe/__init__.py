"""Settings of a recipe in words."""
