"""The fastest recipe of a workload by measured trials."""
