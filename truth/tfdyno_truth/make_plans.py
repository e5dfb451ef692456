"""Plan the memory of every measured step by the product's own routes and store what they plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import TfdynoError
from tfdyno.jobs.choose.compile import compile_exact
from tfdyno.jobs.choose.predict import StepSettings, family_name, predictor_for
from tfdyno_truth.make_records import workload_of
from tfdyno_truth.own_peaks import CARDS, PLANS, ROUTES, path_of, read_steps, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tfdyno.core.choose.program import Program


def make_missing(tell: Callable[[str], None], folder: Path = PLANS) -> int:
    """Make the plans that are missing, one at a time; returns how many failed.

    Graph mode has the quick one only: nothing is compiled there.

    Args:
        tell: Is given a line about every plan.
        folder: Where the plans are.
    """
    wanted = [
        (row, route)
        for row in read_steps()
        for route in ROUTES
        if not path_of(folder, row, route).exists()
        and (route == "quick" or row["execution"] == "xla")
    ]
    failures = 0
    for number, (row, route) in enumerate(wanted, 1):
        name = path_of(folder, row, route).name
        try:
            write_plan(folder, row, route, _program(row, route))
        except TfdynoError as error:
            failures += 1
            tell(f"{number}/{len(wanted)} FAILED {name}: {error}")
        else:
            tell(f"{number}/{len(wanted)} {name}")
    return failures


def _program(row: dict[str, Any], route: str) -> Program:
    precision, gpu = row["precision"], find(CARDS[row["gpu"]])
    policy = "float32" if precision == "tf32" else precision
    predictor = predictor_for(
        workload_of((f"today.{row['model']}", row["mode"], policy)),
        StepSettings(precision=precision, execution=row["execution"]),
        batch_size=row["batch"], card_files=False, progress=lambda _: None,
    )  # fmt: skip
    if route == "quick":
        return predictor.program_for(gpu)
    return compile_exact(
        predictor.traced, family=family_name(gpu), batch_size=row["batch"], real=True, gpu=gpu
    )
