"""The commands of ``tfdyno-truth``, one file each."""
