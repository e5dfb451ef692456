"""What grows in memory while a training runs."""
