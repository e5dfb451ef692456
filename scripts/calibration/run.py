"""Refit the time model to the stored kernel records and say how good it is."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibration import judge, report, scaling, toml
from calibration.design import Design, design_of
from calibration.fit import fit, leave_out
from calibration.make_records import FOLDER
from calibration.rows import contradicted, read_rows, single_gpu
from tfdyno.catalog.time_model import time_model
from tfdyno.core.codec import write_atomic

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
TIME_MODEL = ROOT / "src" / "tfdyno" / "catalog" / "data" / "time_model.toml"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A fit on all rows and what fits without each chip or architecture predict for it."""

    design: Design
    main: NDArray[np.bool_]
    """Rows that are judged in the strata (neither launch-bound nor with fused attention)."""
    learnable: NDArray[np.bool_]
    constants: dict[str, float]
    by_name: dict[str, Floats]
    """``everything seen``, ``card left out``, ``model left out`` -> predicted seconds."""
    widths: dict[str, float]
    """Of the intervals, learned from all rows."""
    row_widths: dict[str, Floats]
    """Of every row's interval, learned without the rows that were left out together."""
    seconds_s: float


def main() -> int:
    """Fit, print, and unless ablated or told otherwise write the constants and the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="append", default=[], metavar="TERM")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="kernel records")
    options = parser.parse_args()
    unknown = set(options.without) - set(time_model().parameters)
    if unknown:
        parser.error(f"no such term: {', '.join(sorted(unknown))}")
    fitted = fit_all(options.folder, frozenset(options.without))
    runs = scaling.runs_of(read_rows(), options.folder, time_model(), fitted.constants)
    exchange = scaling.fit_scaling(runs, time_model())
    errors = scaling.efficiency_errors(runs, time_model().values | exchange)
    page = report.page(fitted) + "\n" + report.scaling_section(errors, exchange)
    print(report.summary(fitted) + "\n\n" + report.scaling_section(errors, exchange))
    if options.without or options.dry_run:
        return 0
    toml.rewrite(
        TIME_MODEL,
        version=f"{datetime.now(UTC):%Y-%m-%d}",
        values={
            n: value for n, value in fitted.constants.items() if time_model().parameters[n].fitted
        }
        | exchange,
        widths=fitted.widths,
    )
    write_atomic(ROOT / "docs" / "accuracy.md", page.encode())
    return 0


def fit_all(folder: Path, without: frozenset[str] = frozenset()) -> Fitted:
    """Fit on all rows, then leaving out every chip and every architecture in turn."""
    start = time.monotonic()
    rows = single_gpu(read_rows())
    bad = contradicted(rows)
    design = design_of(rows, folder, time_model().sustained_clock)
    main = np.array([not (r.launch_bound or r.fused_attention) for r in design.rows])
    learnable = main & np.array([r.number not in bad for r in design.rows])
    parameters = time_model().parameters
    constants = fit(design.take(np.flatnonzero(learnable)), parameters, without=without)
    ways = {"card left out": lambda r: r.chip, "model left out": lambda r: r.architecture}
    unseen = {
        name: leave_out(design, parameters, learnable, by, without=without, start=constants)
        for name, by in ways.items()
    }
    judged = np.array([not row.fused_attention for row in design.rows])
    residuals = [np.log(predicted) - design.log_step for predicted in unseen.values()]
    widths = judge.interval_widths(design, judged, residuals)
    row_widths = {
        name: judge.unseen_row_widths(design, judged, residuals, by) for name, by in ways.items()
    }
    return Fitted(
        design=design,
        main=main,
        learnable=learnable,
        constants=constants,
        by_name={"everything seen": design.predict(constants), **unseen},
        widths=widths,
        row_widths={"everything seen": judge.row_widths(design, widths), **row_widths},
        seconds_s=time.monotonic() - start,
    )


if __name__ == "__main__":
    sys.exit(main())
