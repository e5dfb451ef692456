"""Which operations of a step become one launch, and in which order the launches run.

Others use ``memory_order``, ``rule``; the rest is private.
"""
