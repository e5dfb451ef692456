"""How many cards a language model is served by, and how many requests at once.

The server keeps keys and values of every token in blocks. What a card has left for them is its
share of the memory, less the weights, less what the work itself holds; the last is assumed, and
the requests are counted with the most that it may be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import GIB, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.language_model import LanguageModel, ServedPrecision

UTILIZATION_RATIO = 0.9
"""The share of a card that the server may take; vLLM 0.33 takes 0.92 where nobody says."""
BLOCK_TOKENS = 16
"""Tokens whose keys and values lie together (vLLM's ``CacheConfig.DEFAULT_BLOCK_SIZE``)."""
MOST_REQUESTS = 256
"""What vLLM takes at once on cards below 70 GiB where nobody says."""
BATCHED_TOKENS = 2048
"""As well: tokens in one step."""
CARDS = (1, 2, 4, 8)
_BYTES: dict[ServedPrecision, int] = {"bfloat16": 2, "float16": 2, "float32": 4, "float8": 2}
"""Of keys and values, and of all weights but those of layers in float8."""
_FIXED_BYTES = Interval(low=0.2 * GIB, best=1.0 * GIB, high=2.5 * GIB)
"""Assumed: CUDA's context, the libraries, the graphs of steps, and between cards NCCL's buffers."""
_COPIES = Interval(low=0.5, best=2.0, high=4.0)
"""Assumed: how often the widest tensors of a step, and its scores in float32, are held at once."""


def cache_bytes_per_token(model: LanguageModel, precision: ServedPrecision, cards: int) -> float:
    """Return bytes of keys and values of one token on one card; heads are shared out, or copied.

    ``2 * layers * max(1, kv_heads / cards) * head_size * bytes``.
    """
    heads = max(1.0, model.kv_heads / cards)
    return 2 * model.layers * heads * model.head_size * _BYTES[precision]


def weights_bytes(model: LanguageModel, precision: ServedPrecision, cards: int) -> float:
    """Return bytes of weights on one card; in float8 the table and the head stay in bfloat16."""
    if precision != "float8":
        return model.parameter_count * _BYTES[precision] / cards
    tables = model.vocabulary * model.hidden * (1 if model.is_tied else 2)
    return (model.parameter_count + tables) / cards


def working_bytes(
    model: LanguageModel, precision: ServedPrecision, cards: int, requests: int
) -> Interval:
    """Return what a card holds beside weights and cache: assumed, from the widest tensors."""
    wide = BATCHED_TOKENS * (2 * model.intermediate / cards + 4 * model.hidden) * _BYTES[precision]
    scores = requests * model.vocabulary * 4
    return _FIXED_BYTES.together(_COPIES.times(wide + scores))


def left_for_cache(
    model: LanguageModel, precision: ServedPrecision, cards: int, requests: int, memory_bytes: int
) -> Interval:
    """Return what a card has left for keys and values; below 0 nothing fits."""
    share = memory_bytes * UTILIZATION_RATIO - weights_bytes(model, precision, cards)
    work = working_bytes(model, precision, cards, requests)
    return Interval(low=share - work.high, best=share - work.best, high=share - work.low)


def held_requests(cache_bytes: float, bytes_per_token: float, tokens: int) -> int:
    """Return how many requests of so many tokens each the cache holds, in whole blocks."""
    blocks = math.floor(max(0.0, cache_bytes) / (bytes_per_token * BLOCK_TOKENS))
    return blocks // math.ceil(tokens / BLOCK_TOKENS)


def divides(model: LanguageModel, cards: int) -> bool:
    """Return whether so many cards can share the heads, as vLLM shares them."""
    shares = model.kv_heads % cards == 0 or cards % model.kv_heads == 0
    return model.heads % cards == 0 and shares


def choose_cards(
    model: LanguageModel,
    precision: ServedPrecision,
    gpu: str,
    memory_bytes: int,
    *,
    tokens: int,
    most_requests: int,
    asked: int | None = None,
) -> tuple[int, int]:
    """Return the fewest cards that hold the model with one request, and the requests they hold.

    Args:
        model: What is served.
        precision: That it computes in.
        gpu: The card's name, for the message.
        memory_bytes: What its driver reports.
        tokens: Of the longest request.
        most_requests: That are ever worked on at once.
        asked: How many cards it has to be; None: as few as hold it.

    Raises:
        UsageError: No number of cards holds it, or the one that was asked for does not.
    """
    fitting = [cards for cards in (CARDS if asked is None else (asked,)) if divides(model, cards)]
    if not fitting:
        raise UsageError(f"{asked} cards cannot share {model.name}",
                         why=f"it has {model.heads} heads, {model.kv_heads} of keys and values",
                         remedy=f"give {_numbers(model)}")  # fmt: skip
    for cards in fitting:
        per_token = cache_bytes_per_token(model, precision, cards)
        left = left_for_cache(model, precision, cards, most_requests, memory_bytes).low
        if held := min(most_requests, held_requests(left, per_token, tokens)):
            return cards, held
    raise _too_large(model, precision, gpu, memory_bytes, fitting, tokens, most_requests)


def _numbers(model: LanguageModel) -> str:
    found = [str(one) for one in CARDS if divides(model, one)]
    return "--gpus " + " or ".join(found)


def _too_large(
    model: LanguageModel,
    precision: ServedPrecision,
    gpu: str,
    memory_bytes: int,
    tried: Sequence[int],
    tokens: int,
    requests: int,
) -> UsageError:
    cards = tried[-1]
    cache = cache_bytes_per_token(model, precision, cards) * tokens
    weights = weights_bytes(model, precision, cards)
    work = working_bytes(model, precision, cards, requests).high
    needed, there = weights + work + cache, memory_bytes * UTILIZATION_RATIO
    what = f"{cards} {gpu} do not hold {model.name}" if cards > 1 else (
        f"one {gpu} does not hold {model.name}"
    )  # fmt: skip
    return UsageError(
        what,
        why=f"each needs {format_bytes(needed)} ({format_bytes(weights)} of weights, "
        f"{format_bytes(cache)} for a request of {tokens:,} tokens, up to {format_bytes(work)} to "
        f"work with) and gives {format_bytes(there)}",
        remedy="name a larger card, more of them with --gpus, a shorter --prompt and --new-tokens, "
        "a smaller --max-batch, or --precision float8 where the card has it",
    )
