"""The presets of keras-hub: their configurations, and the proof that each is right."""
