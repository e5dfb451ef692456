"""Processes of a training that find each other.

Others use ``calls``, ``rendezvous``, ``rounds``, ``sagemaker_hosts``, ``tf_config``; the rest is
private.
"""
