"""How a probe is run, and what all of them look at."""
