"""Commands for what was trained: export, edge, models, serve."""
