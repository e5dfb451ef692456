"""A language model as a server of text holds it, and the sizes of such a server."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval
from tfdyno.core.deploy.serving_plan import dns_label

ServedPrecision = Literal["bfloat16", "float16", "float32", "float8"]
SERVED_PRECISIONS: tuple[ServedPrecision, ...] = ("bfloat16", "float16", "float32", "float8")
"""Types that a server computes in; float8: weights of layers, all else in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """What decides how much memory a decoder takes that keeps keys and values of every layer."""

    name: str
    architecture: str
    """As ``config.json`` names it: ``LlamaForCausalLM``."""
    layers: int
    heads: int
    """Heads of the queries."""
    kv_heads: int
    """Heads of keys and values."""
    head_size: int
    hidden: int
    intermediate: int
    vocabulary: int
    parameter_count: int
    """A head that shares the table of the words is counted once."""
    is_tied: bool
    """Whether the head is that table."""
    longest: int
    """The most tokens that it was made for; 0: nothing tells."""
    has_windows: bool
    """Whether some layers look back a fixed number of tokens alone."""
    source: str
    """Where these are from, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextServerPlan:
    """A server of text on one machine: what its files say, and what the figures come from."""

    name: str
    model: LanguageModel
    gpu: str
    gpus: int
    """Cards that share every layer."""
    memory_bytes: int
    """What the driver of one card reports."""
    precision: ServedPrecision
    utilization_ratio: float
    """The share of each card's memory that the server takes."""
    max_model_tokens: int
    """Prompt and new tokens of one request."""
    max_requests: int
    """Requests that are worked on at once."""
    max_batched_tokens: int
    """Tokens of all requests in one step."""
    token_bytes: float
    """Keys and values of one token on one card."""
    weights_bytes: float
    """On one card."""
    working_bytes: Interval
    """What else is held on one card; assumed."""
    cache_bytes: Interval
    """What is left for keys and values on one card."""
    port: int
    host: str
    image: str
    storage: str = ""
    """``pvc://NAME/folder`` where a cluster finds the model; empty: no files for Kubernetes."""
    namespace: str = ""
    """Of Kubernetes; empty: the one that ``kubectl`` has."""
    replicas: int = 1
    """Pods, each with its cards."""

    @property
    def resource_name(self) -> str:
        """The name as Kubernetes takes it; raises ``UsageError`` where it makes none."""
        return dns_label(self.name)
