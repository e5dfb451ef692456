"""Whether all devices that should hold the same weights do, and all processes read the same data.

JAX trusts each process to begin with the same values. A callback that sets weights on one of them,
or data that one reads in another order, shows no error.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from tfdyno.core.base.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.untyped import Value, Variable

Rows = np.ndarray[Any, np.dtype[np.uint32]]
Holders = dict[tuple[int, int], list[int]]
"""The values of one part of a weight, with the ranks of the devices that hold each."""
_MOST_NAMED = 4


def check_same_weights(variables: Sequence[Any]) -> None:
    """Compare every part of every weight between the devices that hold it.

    Args:
        variables: Of Keras, the same in the same order in every process.

    Raises:
        ToolError: Two devices hold different numbers for one part; names the workers.
    """
    rows = np.array([row for one in variables for row in _rows_of(one)], np.uint32)
    seen: defaultdict[tuple[int, int], Holders] = defaultdict(dict)
    for rank, table in enumerate(_of_all(rows)):
        for row in table.tolist():
            seen[row[0], row[1]].setdefault((row[2], row[3]), []).append(rank)
    apart = [held for held in seen.values() if len(held) > 1]
    if not apart:
        return
    raise ToolError(
        f"the weights of {_names(odd_ones(apart[0]))} have drifted apart",
        why=f"{len(apart)} parts of weights differ between devices that should hold the same, so "
        "they do not train one model",
        remedy="look for code that sets weights on one worker by itself: a callback or a file "
        "that only one of them reads",
    )


def odd_ones(holders: Holders) -> list[int]:
    """Return who holds another value than most; all of them where no value has the majority."""
    most = max(map(len, holders.values()))
    usual = [ranks for ranks in holders.values() if len(ranks) == most]
    others = [ranks for ranks in holders.values() if len(usual) > 1 or ranks is not usual[0]]
    return sorted({rank for ranks in others for rank in ranks})


def check_same_data(digest: int) -> None:
    """Compare the first batch between all processes; raises ``UsageError`` where one differs."""
    found = _of_all(np.array([[digest]], np.uint32)).reshape(-1).tolist()
    if len(set(found)) > 1:
        odd = [rank for rank, one in enumerate(found) if one != found[0]]
        raise UsageError(
            f"{_names(odd)} read another first batch than worker 0",
            why="each process has to read all samples in one order, of which it keeps its part",
            remedy="leave out what shares the data in the script, and give shuffles a seed",
        )


def numbers_of_all(own: list[float]) -> Value:
    """Return the numbers of all processes, a row for each; a joint operation."""
    return np.asarray(multihost_utils.process_allgather(np.array(own, np.float32)))


def _rows_of(variable: Variable) -> Iterable[tuple[int, int, int, int]]:
    """Yield each part that this process has: which it is, and what is in it, 64 bits each."""
    for shard in variable.value.addressable_shards:
        name = f"{variable.path} {shard.index}".encode()
        raw = np.ascontiguousarray(np.asarray(shard.data)).tobytes()
        yield (*_halves(name), *_halves(raw))


def _halves(data: bytes) -> tuple[int, int]:
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")


def _of_all(rows: Rows) -> Rows:
    """Return the rows of all processes, one table for each."""
    if jax.process_count() == 1:
        return rows[None]
    return np.asarray(multihost_utils.process_allgather(rows))


def _names(ranks: Sequence[int]) -> str:
    named = [f"worker {rank}" for rank in ranks[:_MOST_NAMED]]
    return " and ".join(named + ["others"] * (len(ranks) > _MOST_NAMED))
