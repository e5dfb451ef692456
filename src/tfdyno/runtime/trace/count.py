"""Child process: the quick programs of a step that another interpreter traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.messages.trace import COUNT
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.messages.trace import CountStep, QuickPrograms


def handle(request: CountStep, progress: child.Progress) -> QuickPrograms:
    """Read the StableHLO and count its operations."""
    from tfdyno.runtime.trace.quick import programs_of
    from tfdyno.runtime.trace.stablehlo import read_module

    progress("counting its operations")
    module, folder = read_module(request.stablehlo), request.stablehlo.parent
    return programs_of(module, request.trace, request.lowering, folder)


if __name__ == "__main__":
    child.leave(child.serve(handle, COUNT))
