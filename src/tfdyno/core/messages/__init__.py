"""What each child process is asked and what it answers: the types of both ends, and their JSON."""
