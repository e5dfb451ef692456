"""Queues, batches and fleets of a service.

Others use ``batching``, ``fleet``, ``text_server``; the rest is private.
"""
