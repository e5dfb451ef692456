"""One use case per file; ``child/worker.py`` is the only door to what child processes run."""
