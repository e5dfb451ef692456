"""Run what XLA may fail to compile: again with less of XLA, and without its dumps."""
