"""Compiled programs and autotune results that outlive the process that made them."""
