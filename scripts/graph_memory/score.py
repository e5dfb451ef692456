"""Holds predicted memory of graph mode against the measured: worst first, held-out cases apart.

Writes truth/own/graph_memory_scores.csv unless --dry.
"""

from __future__ import annotations

import argparse
import sys
from statistics import mean

from graph_memory.measure import KEY, MEASURED, ROOT, rows, run, write

SCORES = ROOT / "truth" / "own" / "graph_memory_scores.csv"
PREDICTED = ("tensor_peak_bytes", "in_use_peak_bytes", "footprint_bytes")
COLUMNS = (
    *KEY, "part", *(f"predicted_{name}" for name in (*PREDICTED, "one_region_bytes")),
    *(f"{name.removesuffix('_bytes')}_error" for name in PREDICTED),
)  # fmt: skip
PARTS = ("held out", "seen once", "tuned")


def errors(measured: dict[str, str], predicted: dict[str, float]) -> dict[str, float]:
    """Relative errors; positive where too much was predicted."""
    return {
        f"{name.removesuffix('_bytes')}_error": predicted[name] / float(measured[name]) - 1.0
        for name in PREDICTED
    }


def summary(scored: list[dict[str, str]]) -> list[str]:
    """Lines of text: every case, worst first, and the means of the parts."""
    lines = []
    for part in PARTS:
        own = [row for row in scored if row["part"] == part]
        own.sort(key=lambda row: -abs(float(row["tensor_peak_error"])))
        for row in own:
            name = " ".join(row[column] for column in KEY)
            shown = "  ".join(f"{100 * float(row[column]):+6.1f} %" for column in COLUMNS[-3:])
            lines.append(f"{name:44s}{shown}")
        if own:
            means = (
                f"{100 * mean(abs(float(row[column])) for row in own):6.1f} %"
                for column in COLUMNS[-3:]
            )
            lines.append(f"{part}, mean of {len(own)}".ljust(44) + "  ".join(means))
    return lines


def main(arguments: list[str]) -> None:
    """Score all measured cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parser.add_argument("--part", default="", help="one part only")
    chosen = parser.parse_args(arguments)
    scored = []
    for case in rows(MEASURED):
        if chosen.part not in ("", case["part"]):
            continue
        predicted: dict[str, float] = run("predict", case)
        told = {f"predicted_{name}": f"{value:.0f}" for name, value in predicted.items()}
        wrong = {name: f"{value:.4f}" for name, value in errors(case, predicted).items()}
        scored.append({**{name: case[name] for name in (*KEY, "part")}, **told, **wrong})
    print("error of                                    tensor peak  chunks in use  footprint")
    print("\n".join(summary(scored)))
    if not chosen.dry and not chosen.part:
        write(SCORES, COLUMNS, scored)


if __name__ == "__main__":
    main(sys.argv[1:])
