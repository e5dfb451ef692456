"""The input pipeline of a workload, measured by itself."""
