"""A recipe chosen for a workload and a card.

Others use ``auto``; the rest is private.
"""
