"""Lists of prices in words."""
