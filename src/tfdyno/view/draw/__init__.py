"""Figures: axes, bars, labels and colours."""
