"""What a .tflite file holds: tensors and operators in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertTensor:
    """A value of the graph; its shape is that of one sample where the batch is open."""

    name: str
    dtype: str
    """The type as numpy writes it; ``string`` and ``resource`` have no size of their own."""
    shape: tuple[int, ...]
    open_axes: tuple[int, ...] = ()
    """Axes whose length is only known when the model runs; 1 stands for it in ``shape``."""
    size_bytes: int
    constant: bool = False
    """Held in the file: a weight or a setting."""
    variable: bool = False
    """Keeps its value from run to run."""
    scale: float = 0.0
    """Real value = scale × (integer − zero point); 0: not quantised as a whole."""
    zero_point: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertOperator:
    """One step of the graph."""

    kind: str
    """The kind as in the schema: ``CONV_2D``; the code's own name for a custom operator."""
    version: int = 1
    custom: bool = False
    inputs: tuple[int, ...]
    """Places of tensors; -1: left out."""
    outputs: tuple[int, ...]
    arithmetic: int = 0
    """Multiplications and additions of one run, over one sample; what it calls is not counted."""
    calls: tuple[int, ...] = ()
    """Places of the subgraphs that it runs: condition and body of a loop, branches."""
    repeats: int = 1
    """How often it runs them, as far as the file says."""
    repeats_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertSubgraph:
    """A list of operators over tensors of their own."""

    tensors: tuple[LitertTensor, ...]
    operators: tuple[LitertOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertPort:
    """An input or output under the name by which a caller gives or gets it."""

    name: str
    tensor: int
    """Place among the tensors of the main subgraph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertGraph:
    """A whole file; the first subgraph is the one that runs."""

    subgraphs: tuple[LitertSubgraph, ...]
    signature: str
    """Empty: the file has none, and the ports have the names of their tensors."""
    inputs: tuple[LitertPort, ...]
    outputs: tuple[LitertPort, ...]
    size_bytes: int
    description: str = ""

    @property
    def main(self) -> LitertSubgraph:
        """The subgraph that runs."""
        return self.subgraphs[0]

    def tensor(self, port: LitertPort) -> LitertTensor:
        """Return what a port carries."""
        return self.main.tensors[port.tensor]
