"""Words, numbers and tables that all answers share."""
