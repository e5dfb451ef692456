"""The time and memory of a step, from its kernels.

Others use ``batch_copy``, ``bus_bandwidth``, ``calibrate.constants``, ``calibrate.cpu_law``,
``calibrate.steps``, ``calibrate.verdict``, ``calibrate.windows``, ``energy``, ``estimate``,
``kernel_time``, ``peaks``, ``proposed_layout``, ``recalibration``, ``scaling``, ``sharding``,
``shards``; the rest is private.
"""
