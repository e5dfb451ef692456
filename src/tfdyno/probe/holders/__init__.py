"""Who holds the memory of the cards that a run would use."""
