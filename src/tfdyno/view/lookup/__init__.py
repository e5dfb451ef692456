"""Lists of the catalogue and of what is kept."""
