"""Queues, batches and fleets of a service."""
