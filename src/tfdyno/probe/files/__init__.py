"""Files and data sets, looked through."""
