"""Models for elsewhere: exported, fitted to small devices, kept by version."""
