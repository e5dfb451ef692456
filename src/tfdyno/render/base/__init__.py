"""YAML, text protos and templates."""
