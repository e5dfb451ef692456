"""A training on several nodes, here or by an engine.

Others use ``launch``, ``local``, ``migrate``, ``node``, ``ray``, ``ray_driver``, ``ray_worker``;
the rest is private.
"""
