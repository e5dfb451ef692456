"""Commands that choose: advise, estimate, memory, gpus, offers, calibrate, ui.

Others use ``advise``, ``cache``, ``calibrate``, ``can_run``, ``estimate``, ``gpus``, ``memory``,
``offers``, ``ui``; the rest is private.
"""
