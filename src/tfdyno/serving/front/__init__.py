"""The process that clients talk to: HTTP, gRPC, queues and batches; needs no framework."""
