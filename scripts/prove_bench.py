"""Measure how often a comparison in turns errs: equal workloads, and an injected slowdown.

Several sides are measured in turns, as ``bench --against`` does with two: each round runs every
side once, in the order of the round before reversed. Half of the sides are plain, half are slowed,
and every side is compared with every other. Comparisons share sides and are not independent.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from prove_bench_page import Pairing, Proof, page
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import Measurement, Protocol
from tfdyno.core.measure.measurement_document import MeasurementReport
from tfdyno.core.messages.bench import MeasureHere
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.bench.compare import compare_all
from tfdyno.jobs.bench.measured_files import measurements_at
from tfdyno.jobs.bench.run import measured
from tfdyno.jobs.child.worker import silent
from tfdyno.model.measure.steady_part import run_medians_s
from tfdyno.model.measure.summary import summary
from tfdyno.view.bench.export import exported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.measure.measurement import Verdict

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "data" / "scripts" / "slowable.py"
SLEEP = "TFDYNO_PROOF_SLEEP_RATIO"
SLOWDOWN_RATIO = 0.05
SAMPLE_SLOWDOWN_RATIO = 0.25
SAMPLE_PROTOCOL = Protocol(least_samples=12, least_s=1.0, most_s=2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the workloads that take turns, kept as one file."""

    name: str
    slow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    side_count: int
    """Plain and slowed ones together."""
    rounds: int
    """Runs of every side."""
    protocol: Protocol
    slowdown_ratio: float
    folder: Path

    @property
    def sides(self) -> tuple[Side, ...]:
        """Plain and slowed ones, alternating."""
        return tuple(
            Side(name=f"{'slow' if at % 2 else 'plain'}-{at:02}", slow=at % 2 == 1)
            for at in range(self.side_count)
        )

    @property
    def turns(self) -> tuple[Side, ...]:
        """Whose run is next: every second round goes backwards."""
        return tuple(
            side
            for number in range(self.rounds)
            for side in (reversed(self.sides) if number % 2 else self.sides)
        )

    def path(self, one: Side) -> Path:
        """The JSON file of a side."""
        return self.folder / f"{one.name}.json"


def prove(plan: Plan, say: Callable[[str], None]) -> Proof:
    """Make all runs that are not there yet, and compare the sides in pairs.

    Raises:
        TfdynoError: A run failed; what was measured before it is kept.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    kept = {side: _kept(plan, side) for side in plan.sides}
    session = next((one.session for one in kept.values() if one), secrets.token_hex(6))
    done = dict.fromkeys(plan.sides, 0)
    for order, side in enumerate(plan.turns):
        done[side] += 1
        so_far = kept[side]
        if so_far and len(so_far.runs) >= done[side]:
            continue
        say(f"{order + 1} of {len(plan.turns)}: {side.name}, run {done[side]}")
        kept[side] = _run(plan, side, so_far, order, session)
    pairings = [_pairing(plan, *pair) for pair in combinations(plan.sides, 2)]
    first = measurements_at(str(plan.path(plan.sides[0])))[0]
    return Proof(
        slowdown_ratio=plan.slowdown_ratio,
        step_s=summary(first).median_s,
        first=first,
        same=tuple(one for one in pairings if not one.slowed),
        slowed=tuple(one for one in pairings if one.slowed),
    )


def _kept(plan: Plan, side: Side) -> Measurement | None:
    path = plan.path(side)
    return measurements_at(str(path))[0] if path.exists() else None


def _run(
    plan: Plan, side: Side, so_far: Measurement | None, order: int, session: str
) -> Measurement:
    """One run more of a side, written to its file at once."""
    with _sleeping(plan.slowdown_ratio if side.slow else 0.0):
        asked = MeasureHere(
            workload=Workload(reference=str(SCRIPT), kind="script"), recipe=Recipe(),
            protocol=plan.protocol, order=order, doing=f"a run of {side.name}",
        )  # fmt: skip
        found = measured(asked, silent)
    so_far = so_far or Measurement(
        id=secrets.token_hex(6),
        protocol=plan.protocol,
        task=replace(found.task, reference=SCRIPT.name),
        recipe=Recipe(),
        environment=found.environment,
        runs=(),
        session=session,
        label=side.name,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    one = replace(so_far, runs=(*so_far.runs, found.run))
    told = MeasurementReport(
        measurement=one, summary=summary(one), medians_s=run_medians_s(one.runs)
    )
    write_atomic(plan.path(side), exported(plan.path(side), [told], None))
    return one


@contextmanager
def _sleeping(ratio: float) -> Iterator[None]:
    """Set for the children of this process, and put back."""
    before = os.environ.get(SLEEP)
    os.environ[SLEEP] = repr(ratio)
    try:
        yield
    finally:
        os.environ.pop(SLEEP)
        if before is not None:
            os.environ[SLEEP] = before


def _pairing(plan: Plan, left: Side, right: Side) -> Pairing:
    """Two sides compared by the real job."""
    base, other = compare_all([str(plan.path(one)) for one in (left, right)])
    assert other.comparison
    wanted: Verdict = "no_difference"
    if left.slow != right.slow:
        wanted = "slower" if right.slow else "faster"
    kinds = {one.kind for side in (base, other) for one in side.summary.instabilities}
    return Pairing(
        name=f"{left.name} → {right.name}",
        wanted=wanted,
        comparison=other.comparison,
        doubts=tuple(sorted(kinds)),
    )


def _plan(given: argparse.Namespace, folder: Path) -> Plan:
    if given.sample:
        return Plan(side_count=3, rounds=4, protocol=SAMPLE_PROTOCOL, folder=folder,
                    slowdown_ratio=SAMPLE_SLOWDOWN_RATIO)  # fmt: skip
    return Plan(side_count=given.sides, rounds=given.rounds, protocol=Protocol(), folder=folder,
                slowdown_ratio=SLOWDOWN_RATIO)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write the page; 1 where the proof fails, 3 where a bench does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, default=14, metavar="N",
                        help="plain and slowed ones; default 14, 42 equal pairs")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=Protocol().most_runs, metavar="N",
                        help="runs of each; default as bench does at most")  # fmt: skip
    parser.add_argument("--folder", type=Path, help="where runs are kept, to go on later")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "bench-proof.md")
    parser.add_argument("--sample", action="store_true", help="three sides, 25 %% slower, no page")
    given = parser.parse_args(words)
    if given.sides < 3 or given.rounds < 3:
        parser.error("give three sides and rounds or more")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="tfdyno-proof-"))
    print(f"runs are kept in {folder}; --folder {folder} goes on there", file=sys.stderr)
    try:
        proof = prove(_plan(given, folder), lambda text: print(text, file=sys.stderr, flush=True))
    except TfdynoError as error:
        print(f"prove_bench: {error}", file=sys.stderr)
        return 3
    text = page(proof)
    if given.sample:
        print(text)
    else:
        write_atomic(given.out, text.encode())
        print(f"wrote {given.out}", file=sys.stderr)
    return 0 if proof.holds else 1


if __name__ == "__main__":
    sys.exit(main())
