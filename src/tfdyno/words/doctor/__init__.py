"""The doctor's words in the languages it speaks."""
