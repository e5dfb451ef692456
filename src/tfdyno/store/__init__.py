"""Results on disk.

Others use ``cache``, ``card_files``, ``dataset_folder``, ``dependencies``, ``digests``,
``model_files``, ``model_store``, ``project_history``, ``recalibration``, ``results``,
``run_events``, ``run_folder``, ``tuning_study``; the rest is private.
"""
