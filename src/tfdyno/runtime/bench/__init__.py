"""One run of a bench: steps timed from inside."""
