"""What a step holds in memory over its course.

Others use ``buffer_parts``, ``graph_memory``, ``live_bytes``, ``liveness``; the rest is private.
"""
