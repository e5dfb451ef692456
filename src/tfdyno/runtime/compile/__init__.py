"""A traced step compiled by XLA for a GPU that is not there."""
