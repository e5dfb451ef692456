"""Commands that train: train, tune, launch, recipe."""
