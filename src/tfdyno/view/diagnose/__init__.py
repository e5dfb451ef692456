"""Diagnoses as text, JSON and pages.

Others use ``document``, ``figure_course``, ``figure_split``, ``figure_stages``, ``findings``,
``growth_page``, ``growth_text``, ``page``, ``text``, ``words``; the rest is private.
"""
