"""A recipe chosen for a workload and a card."""
