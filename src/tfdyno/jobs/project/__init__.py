"""The steps of a project, run and reported."""
