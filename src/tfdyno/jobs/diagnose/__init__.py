"""What holds a training back, and the proof of what mends it."""
