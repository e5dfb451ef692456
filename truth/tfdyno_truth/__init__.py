"""The truth about tfdyno: fits its constants to measurements and says how good they are."""
