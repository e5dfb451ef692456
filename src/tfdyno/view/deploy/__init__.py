"""Exports, small devices and the model store in words."""
