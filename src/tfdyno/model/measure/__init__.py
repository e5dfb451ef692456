"""Statistics of what was measured.

Others use ``clock_offset``, ``comparison``, ``feed_law``, ``feed_pace``, ``feeding``,
``instability``, ``load_figures``, ``load_knee``, ``statistics``, ``steady``, ``steady_part``,
``summary``, ``trial_judge``, ``trial_law``; the rest is private.
"""
