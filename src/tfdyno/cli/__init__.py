"""Arguments to jobs to views: one file per command, no arithmetic."""
