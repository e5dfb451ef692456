"""Measurements as text, JSON and pages.

Others use ``compare_text``, ``export``, ``figure_load``, ``figure_ratio``, ``figure_samples``,
``figure_steps``, ``load_page``, ``load_text``, ``page``, ``runs``, ``tables``, ``text``; the rest
is private.
"""
