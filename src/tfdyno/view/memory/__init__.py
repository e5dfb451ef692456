"""The memory of a step as text, JSON and a page."""
