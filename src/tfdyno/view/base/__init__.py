"""Text, templates and documents that several answers share."""
