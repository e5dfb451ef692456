"""Commands for projects."""
