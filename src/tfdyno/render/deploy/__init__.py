"""Programs around an exported model."""
