"""The reader beside a converted data set."""
