"""The composition matrix: what a training recipe can combine, run for real."""
