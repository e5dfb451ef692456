"""A recipe set on a model: its step, its strategy, its preprocessing.

Others use ``apply``, ``build``, ``composed_step``, ``flops``, ``functions``, ``parameter_server``,
``preprocessing``, ``scheduled_step``, ``settle``, ``strategy``; the rest is private.
"""
