"""How much memory LiteRT's interpreter lays out for the values of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ALIGNMENT_BYTES = 64


def arena_bytes(path: Path) -> int:
    """Return bytes from first to last of all values that are no weights, for one sample.

    The plain operators of LiteRT are used: what XNNPACK takes over is in its own memory, which
    cannot be seen. Room that kernels ask for is in it (here: those of this CPU). The addresses of
    the values say it; weights lie elsewhere, where the file was read to. 0: it cannot be read.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    from tfdyno.runtime.litert.file import read

    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=plain)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError):
        return 0
    constant = {i for i, one in enumerate(read(path).main.tensors) if one.constant}
    starts, ends, sizes = [], [], []
    for details in interpreter.get_tensor_details():
        if details["index"] in constant:
            continue
        try:
            view = interpreter.tensor(details["index"])()
        except (ValueError, RuntimeError):  # has no memory before it runs
            continue
        address = view.__array_interface__["data"][0]
        if view.nbytes:
            starts.append(address)
            ends.append(address + view.nbytes)
            sizes.append(view.nbytes + ALIGNMENT_BYTES)
    extent = max(ends) - min(starts) if starts else 0
    # Values that have their size only at run time lie elsewhere: then it is no single block.
    return extent if extent <= sum(sizes) else 0
