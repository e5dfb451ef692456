"""Prices of today: fetched from public lists, mapped to the catalogue's cards, and dated.

Others use ``fetch_times``, ``today``; the rest is private.
"""
