"""The process that clients talk to: HTTP, gRPC, queues and batches; needs no framework.

Others use ``child``, ``table``, ``wire``; the rest is private.
"""
