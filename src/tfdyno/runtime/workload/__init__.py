"""From what a user names to a model, its data and its call of ``fit``.

Others use ``batch``, ``capture``, ``capture_loop``, ``dataspec``, ``fit_call``, ``held_calls``,
``input_options``, ``input_rebuild``, ``input_stages``, ``kerasfile``, ``loop_step``,
``preset_training``, ``rebatch``, ``standins``, ``synthetic``, ``weightless``, ``workloads``; the
rest is private.
"""
