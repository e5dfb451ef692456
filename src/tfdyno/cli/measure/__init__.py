"""Commands that measure: bench, compare, diagnose, doctor."""
