"""Arithmetic without input or output: kernel time, step time, memory, cost."""
