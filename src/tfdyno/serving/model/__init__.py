"""The process of one version of a served model."""
