"""Who holds the memory of the cards that a run would use.

Others use ``cards``; the rest is private.
"""
