"""A data set written as shards, and read before and after."""
