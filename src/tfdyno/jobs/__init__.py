"""One use case per file; ``_worker`` is the only door to ``runtime``."""
