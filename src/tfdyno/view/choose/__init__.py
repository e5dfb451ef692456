"""The answers of estimate and advise as text, JSON and pages.

Others use ``advice_text``, ``backends_page``, ``backends_text``, ``estimate_text``,
``explanation_text``, ``figure_roofline``, ``figures``, ``generating_text``, ``html``,
``ranking_text``, ``scale_out_text``, ``sections``, ``sentences``, ``serving_size_document``,
``serving_size_page``, ``serving_size_text``, ``sharding_text``; the rest is private.
"""
