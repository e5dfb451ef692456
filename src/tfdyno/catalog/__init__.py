"""What is known about hardware, prices and software: data files and their readers.

Others use ``assumptions``, ``clusters``, ``containers``, ``edge_devices``, ``families``,
``generations``, ``gpus``, ``links``, ``offer_rules``, ``offers``, ``presets``,
``price_history``, ``price_ranges``, ``price_sources``, ``releases``, ``software``, ``sweeps``,
``tables``, ``tasks``, ``time_model``; the rest is private.
"""
