"""Parts of a step, kinds of kernels and ways to run in words."""

from __future__ import annotations

CAUSES = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "launch": "kernel launch",
    "communication": "communication between GPUs",
    "input": "waiting for input",
}
KINDS = {
    "convolution": "convolutions",
    "gemm": "matrix products",
    "loop": "element-wise kernels",
    "reduce": "reductions",
    "transpose": "transposes",
    "window": "pooling",
    "gather": "gathers",
    "scatter": "scatters",
    "copy": "copies",
    "sort": "sorts",
    "scan": "scans",
    "random": "random numbers",
    "collective": "collectives",
    "recurrent": "steps of recurrent layers",
    "other": "other kernels",
}


def cause(name: str) -> str:
    """Return the words for a key of ``Estimate.terms_s``."""
    return CAUSES.get(name, name)


def kind(name: str) -> str:
    """Return the words, in the plural, for a kind of kernel."""
    return KINDS.get(name, name)


def execution(name: str) -> str:
    """Return how a step runs, as the page writes it: ``XLA``, ``graph``."""
    return name.upper() if name == "xla" else name
