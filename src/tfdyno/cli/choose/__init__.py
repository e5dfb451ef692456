"""Commands that choose: advise, estimate, memory, gpus, offers, calibrate.

Others use ``advise``, ``cache``, ``calibrate``, ``can_run``, ``estimate``, ``gpus``, ``memory``,
``offers``; the rest is private.
"""
