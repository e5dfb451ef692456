"""What tfdyno itself costs: seconds and memory of its commands and of its child processes."""
