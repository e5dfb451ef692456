"""Projects as text, JSON and one page."""
