"""Child processes of ``runtime``: started, watched, and read."""
