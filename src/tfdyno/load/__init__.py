"""The client of a load test; needs no framework."""
