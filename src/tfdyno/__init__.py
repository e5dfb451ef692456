"""tfdyno: which GPU for your Keras model, without a GPU in the room.

import tfdyno

traced = tfdyno.trace("train.py:build_model")
tfdyno.estimate(traced, gpu="a100-sxm4-80gb", batch_size=64)
tfdyno.advise(traced, epochs=90, samples=1_281_167, deadline_h=24)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tfdyno.core.base.version import VERSION

if TYPE_CHECKING:
    from tfdyno.api import AdviceResult, EstimateResult, TrainResult, advise, estimate, fit, trace
    from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.advice import Advice
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu, Link, Offer
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import FineTune, Trace, Workload
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.diagnosed import DiagnoseResult, diagnose
    from tfdyno.jobs.choose.trace import Traced
    from tfdyno.tuned import TuneResult, tune

__version__ = VERSION
__all__ = [
    "Advice",
    "AdviceResult",
    "DiagnoseResult",
    "Estimate",
    "EstimateResult",
    "FineTune",
    "Gpu",
    "Interval",
    "Link",
    "Offer",
    "Program",
    "Recipe",
    "TfdynoError",
    "ToolError",
    "Trace",
    "Traced",
    "TrainResult",
    "TuneResult",
    "UsageError",
    "Workload",
    "advise",
    "diagnose",
    "estimate",
    "fit",
    "trace",
    "tune",
]
_HOMES = {
    name: module
    for module, names in {
        "api": "AdviceResult EstimateResult TrainResult advise estimate fit trace",
        "core.base.errors": "TfdynoError ToolError UsageError",
        "core.base.interval": "Interval",
        "core.choose.advice": "Advice",
        "core.choose.estimate": "Estimate",
        "core.choose.hardware": "Gpu Link Offer",
        "core.choose.program": "Program",
        "core.choose.workload": "FineTune Trace Workload",
        "core.recipe.recipe": "Recipe",
        "diagnosed": "DiagnoseResult diagnose",
        "jobs.choose.trace": "Traced",
        "tuned": "TuneResult tune",
    }.items()
    for name in names.split()
}
"""Module of each public name: nothing is imported before it is used."""


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tfdyno' has no attribute '{name}'")
    return getattr(importlib.import_module(f"tfdyno.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*__all__, "__version__"]
