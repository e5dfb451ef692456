"""YAML and text protos."""
