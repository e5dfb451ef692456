"""``scripts/gpu_truth``: measures steps on the card of this machine and adds them to the truth."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_truth import host, interrupt, plan
from gpu_truth.card import Card, find_card
from gpu_truth.drive import Job, Outcome, drive, identity_of, known_steps
from gpu_truth.plan import Step, WrongUseError
from gpu_truth.rows import SCHEMA, RowError

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN = Path(__file__).resolve().parents[1] / "own" / "steps.jsonl"
BYTES_A_COMPILE = 12 << 30
"""Card memory that one compile with its tuning may want: eight held 66 GB of an H200 together."""
CORES_A_COMPILE = 2
MOST_SIDE_BY_SIDE = 8


def main(words: Sequence[str] | None = None) -> int:
    """Measure; exit code 2 for wrong use, 1 where every step failed, 130 for Ctrl-C."""
    asked = _parser().parse_args(words)
    try:
        return _run(asked)
    except (WrongUseError, RowError) as error:
        sys.stderr.write(f"gpu_truth: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("gpu_truth: interrupted before the first step\n")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu_truth",
        description="Measures training and inference steps on the NVIDIA card of this machine and "
        "adds them to truth/own/steps.jsonl. Needs Keras 3, NumPy, and TensorFlow or JAX. What was "
        "measured before with the same card and versions is skipped, so it goes on where it ended.",
    )
    add = parser.add_argument
    add("--list", action="store_true", help="show the plan in its order and measure nothing")
    add("--dry-run", action="store_true", help="show what would be measured here")
    add("--only", metavar="MODEL,...", default="", help="these models of the plan")
    add(
        "--subset", metavar="KEY=VALUE", action="append", default=[],
        help=f"only some steps: {' '.join(plan.KEYS)}; one key twice means either",
    )  # fmt: skip
    add("--framework", choices=plan.FRAMEWORKS, help="tensorflow where it is installed, else jax")
    add("--minutes", type=positive, default=10.0, help="begin no step that ends later (10)")
    add("--side-by-side", type=_count, metavar="N", help="compiles at a time; by cores and memory")
    add("--compile-limit", type=positive, default=180.0, metavar="S", help="of one step (180)")
    add("--measure-limit", type=positive, default=90.0, metavar="S", help="of one step (90)")
    add("--output", type=Path, metavar="FILE", help=f"where rows go ({OWN.name} in truth/own)")
    add("--card", metavar="INDEX", help="index or UUID of the card (the first visible)")
    add("--shared", action="store_true", help="measure beside others; the rows say so")
    add("--again", action="store_true", help="try steps again that failed before")
    add(
        "--device", choices=("gpu", "cpu"), default="gpu",
        help="cpu: to try the tool out, with --output; no truth about any card",
    )  # fmt: skip
    add("--json", action="store_true", help="the answer as JSON")
    return parser


def positive(text: str) -> float:
    """A number above 0 of the command line."""
    number = float(text)
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _run(asked: argparse.Namespace) -> int:
    backend = asked.framework or host.installed_framework() or "tensorflow"
    steps = plan.read_plan(backend)
    if asked.only:
        steps = plan.only_models(steps, asked.only.split(","))
    steps = plan.subset(steps, asked.subset)
    if not steps:
        raise WrongUseError(f"no step of the plan is all of that under {backend}: ask for less")
    if asked.list:
        _show(steps, asked.json)
        return 0
    host.require(backend)
    output = _output(asked)
    card = None if asked.device == "cpu" else _card(asked)
    if card is not None:
        steps = plan.for_card(steps, card.capability)
        if not steps:
            raise WrongUseError(f"{card.name} has none of these precisions in its tensor cores")
    job = _job(asked, backend, output, card)
    measured, failed = known_steps(job)
    skip = measured if asked.again else measured | failed
    todo = [step for step in steps if identity_of(step, job) not in skip]
    if asked.dry_run:
        _show(todo, asked.json)
        return 0
    interrupt.listen()
    outcome = drive(todo, job, _tell)
    _answer(outcome, job, skipped=len(steps) - len(todo), as_json=asked.json)
    if outcome.stopped == "interrupted":
        return 130
    if outcome.stopped and not outcome.rows and outcome.stopped != "time is up":
        return 2
    return 1 if todo and not outcome.rows else 0


def _output(asked: argparse.Namespace) -> Path:
    """Where rows go, checked before an hour is spent on them."""
    if asked.device == "cpu":
        if asked.output is None:
            raise WrongUseError("--device cpu needs --output FILE: its rows are no truth of a card")
        if asked.output.resolve() == OWN.resolve():
            raise WrongUseError(f"{asked.output} is for cards: name another file for --device cpu")
    if asked.output is None:
        OWN.parent.mkdir(exist_ok=True)  # a machine may have been given this tool alone
    output: Path = (asked.output or OWN).absolute()
    reason = _unwritable(output)
    if reason:
        raise WrongUseError(f"{output} cannot be written: {reason}")
    return output


def _unwritable(path: Path) -> str:
    """Why no line can be added to a file; empty where one can."""
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    place = path if path.exists() else path.parent
    return "" if os.access(place, os.W_OK) else "permission denied"


def _card(asked: argparse.Namespace) -> Card:
    """The card, if nobody else computes on it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    index = asked.card or visible or "0"
    card = find_card(index)
    if card is None:
        raise WrongUseError(
            f"no NVIDIA card {index} on this machine: the driver tells of none "
            "(tfdyno doctor says why; --device cpu --output FILE tries the tool out)"
        )
    if card.divided:
        raise WrongUseError(f"{card.name} is divided by MIG: a slice tells nothing of the card")
    if card.in_use and not asked.shared:
        raise WrongUseError(
            f"{card.name} is in use by {card.in_use}: what is measured now would be wrong. "
            "Wait, take another with --card, or mark the rows with --shared"
        )
    return card


def _job(asked: argparse.Namespace, backend: str, output: Path, card: Card | None) -> Job:
    cores = host.cores()
    facts = {
        "schema": SCHEMA,
        "source": "scripts/gpu_truth",
        "device": asked.device,
        **({"gpu": host.cpu_name()} if card is None else card.fields),
        **host.facts(),
        **host.versions(backend),
        "cores": cores,
        **({"shared": True} if card is not None and card.in_use else {}),
    }
    return Job(
        output=output,
        device=asked.device,
        uuid=None if card is None else card.uuid,
        facts=facts,
        environment=host.environment(backend, None if card is None else card.uuid),
        minutes_s=asked.minutes * 60.0,
        compile_limit_s=asked.compile_limit,
        measure_limit_s=asked.measure_limit,
        side_by_side=asked.side_by_side or _side_by_side(cores, card),
    )


def _side_by_side(cores: int, card: Card | None) -> int:
    """How many compiles this machine can do at a time."""
    by_cores = cores // CORES_A_COMPILE
    free_bytes = None if card is None else card.free_bytes
    by_memory = by_cores if free_bytes is None else free_bytes // BYTES_A_COMPILE
    return max(1, min(by_cores, by_memory, MOST_SIDE_BY_SIDE))


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _show(steps: Sequence[Step], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps([{**step.fields, "why": step.why} for step in steps]) + "\n")
        return
    why = ""
    for step in steps:
        if step.why != why:
            why = step.why
            sys.stdout.write(f"# {why}\n")
        sys.stdout.write(f"{step.name}\n")
    sys.stdout.write(f"{_many(len(steps), 'step')}\n")


def _answer(outcome: Outcome, job: Job, *, skipped: int, as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = {
            "output": str(job.output),
            "gpu": job.facts["gpu"],
            "device": job.device,
            "rows": len(outcome.rows),
            "skipped": skipped,
            "left": len(outcome.left),
            "stopped": outcome.stopped,
            "failed": [{n: row[n] for n in row if n != "log"} for row in outcome.failed],
            "measured": outcome.rows,
        }
        sys.stdout.write(json.dumps(told) + "\n")
        return
    lines = [f"{_many(len(outcome.rows), 'row')} added to {job.output} ({job.facts['gpu']})"]
    if skipped:
        lines.append(f"{skipped} skipped: measured or failed before (--again tries failed ones)")
    if outcome.failed:
        lines.append(f"{len(outcome.failed)} failed, told in {job.sidecar}")
    if outcome.left:
        reason = f" ({outcome.stopped})" if outcome.stopped else ""
        lines.append(f"{_many(len(outcome.left), 'step')} left{reason}: the same command goes on")
    sys.stdout.write("\n".join(lines) + "\n")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


if __name__ == "__main__":
    sys.exit(main())
