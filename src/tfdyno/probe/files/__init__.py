"""Files and data sets, looked through.

Others use ``content``, ``csv_file``, ``folder_events``, ``image_folder``, ``log_file``,
``preset_folder``, ``shared_folder``, ``source_files``; the rest is private.
"""
