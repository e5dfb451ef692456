"""What is installed for an interpreter."""
