"""The marker batch: one traced program that serves every batch size.

A program is traced at a batch of eight times a prime that divides no other dimension. Every tensor
whose element count that prime divides then grows with the batch, and no other does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PRIMES = (37, 41, 43, 47, 53)
MULTIPLE = 8  # tensor cores and libraries pad what is no multiple of 8


def marker_batch(dimensions: Iterable[int]) -> tuple[int, int]:
    """Choose the batch and its prime for a model with these dimensions (batch excluded).

    Returns:
        (batch, prime); (64, 0) where every prime divides some dimension: no scaling is possible.
    """
    for prime in PRIMES:
        if _clean(prime, dimensions := set(dimensions)):
            return MULTIPLE * prime, prime
    return 64, 0


def marker_of(batch_size: int, dimensions: Iterable[int]) -> int:
    """Return the prime that marks a batch given by the user, or 0 where none does."""
    known = set(dimensions)
    return next((p for p in PRIMES if batch_size % p == 0 and _clean(p, known)), 0)


def _clean(prime: int, dimensions: Iterable[int]) -> bool:
    return all(size % prime or not size for size in dimensions)
