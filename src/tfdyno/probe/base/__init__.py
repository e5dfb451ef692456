"""How a probe is run, and what all of them look at.

Others use ``attempt``, ``child_nvml``, ``children``, ``distributions``, ``driver``, ``folders``,
``host``, ``near``, ``numa``, ``pci``, ``processors``, ``python``; the rest is private.
"""
