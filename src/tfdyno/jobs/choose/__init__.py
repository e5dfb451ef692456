"""Which card, offer and cluster for a model: trace, estimate, advise."""
