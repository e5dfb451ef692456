"""What is known about hardware, prices and software: data files and their readers."""
