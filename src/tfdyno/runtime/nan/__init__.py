"""Where a number was lost in a training."""
