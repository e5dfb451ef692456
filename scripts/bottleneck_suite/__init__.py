"""The scripts with one known cause each, and what diagnose says of them."""
