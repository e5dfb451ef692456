"""What the sweep of a card says of steps: constants of the law, corrections of single kernels."""
