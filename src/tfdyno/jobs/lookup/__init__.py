"""What the catalogue holds, and what is kept on this machine."""
