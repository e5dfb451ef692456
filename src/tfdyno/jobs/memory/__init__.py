"""Where the memory of a step goes, and how to make it fit."""
