"""What a run does about others that hold the memory of its cards: tell, wait, make room, blame."""
