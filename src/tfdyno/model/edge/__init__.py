"""Whether a model fits a small device."""
