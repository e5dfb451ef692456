"""Queues, batches and fleets of a service.

Others use ``batching``, ``fleet``; the rest is private.
"""
