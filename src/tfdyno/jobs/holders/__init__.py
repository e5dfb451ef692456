"""What a run does about others that hold the memory of its cards: tell, wait, make room, blame.

Others use ``card_rates``, ``found_cards``, ``guard``, ``room``, ``words``; the rest is private.
"""
