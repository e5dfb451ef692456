"""A look at a training: where the time of its steps goes."""
