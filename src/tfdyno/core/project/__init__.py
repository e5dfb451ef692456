"""Nouns of projects and their steps.

Others use ``file``, ``output``, ``project``, ``report``, ``step_command``, ``step_key``,
``step_order``, ``step_outputs``, ``step_reference``; the rest is private.
"""
