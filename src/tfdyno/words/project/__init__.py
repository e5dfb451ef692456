"""What the steps of a project found, in figures and in words."""
