"""How a child process talks with its parent and knows its limits; needs no framework."""
