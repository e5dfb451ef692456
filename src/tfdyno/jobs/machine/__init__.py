"""What is known of this machine's cards and software."""
