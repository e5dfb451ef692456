"""A serving plan in the words of each server.

Others use ``images``, ``triton``, ``vllm``; the rest is private.
"""
