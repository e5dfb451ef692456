"""Parts of a step, kinds of kernels and ways to run in words."""

from __future__ import annotations

from tfdyno.words.base.language import say, say_later

CAUSES = {
    "compute": say_later("arithmetic"),
    "memory": say_later("memory traffic"),
    "launch": say_later("kernel launch"),
    "communication": say_later("communication between GPUs"),
    "input": say_later("waiting for input"),
}
KINDS = {
    "convolution": say_later("convolutions"),
    "gemm": say_later("matrix products"),
    "loop": say_later("element-wise kernels"),
    "reduce": say_later("reductions"),
    "transpose": say_later("transposes"),
    "window": say_later("pooling"),
    "gather": say_later("gathers"),
    "scatter": say_later("scatters"),
    "copy": say_later("copies"),
    "sort": say_later("sorts"),
    "scan": say_later("scans"),
    "random": say_later("random numbers"),
    "collective": say_later("collectives"),
    "attention": say_later("fused attention"),
    "recurrent": say_later("steps of recurrent layers"),
    "other": say_later("other kernels"),
}


def cause(name: str) -> str:
    """Return the words for a key of ``Estimate.terms_s``."""
    return say(CAUSES[name]) if name in CAUSES else name


def kind(name: str) -> str:
    """Return the words, in the plural, for a kind of kernel."""
    return say(KINDS[name]) if name in KINDS else name


def execution(name: str) -> str:
    """Return how a step runs, as the page writes it: ``XLA``, ``graph``."""
    return name.upper() if name == "xla" else name
