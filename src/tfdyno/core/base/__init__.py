"""What every noun rests on: errors, the codec, intervals, units."""
