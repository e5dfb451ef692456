"""Commands that train: train, tune, launch, recipe.

Others use ``launch``, ``migrate``, ``node``, ``recipe``, ``train``, ``train_progress``, ``tune``;
the rest is private.
"""
