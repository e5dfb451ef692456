"""Measure how often bench and compare err: A/A runs, an injected slowdown, repeated benches.

Benches follow each other in time and every one is compared with the one before it, so that n + 1
benches give n comparisons; neighbours share a bench and are not fully independent of each other.
With ``--turns`` each A/A and each slowdown is a session of its own, ``bench --against``: A and B
differ in their seed, and the workload sleeps where it finds B's.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from prove_bench_page import Pairing, Proof, page
from tfdyno.core.codec import write_atomic
from tfdyno.core.errors import TfdynoError
from tfdyno.core.measurement import Protocol
from tfdyno.core.recipe import Recipe
from tfdyno.core.workload import Workload
from tfdyno.jobs.bench import Question, bench
from tfdyno.jobs.compare import compare_all
from tfdyno.jobs.measured_files import measurements_at
from tfdyno.model.comparison import compare
from tfdyno.model.steady_part import run_medians_s
from tfdyno.model.summary import summary
from tfdyno.view.bench_document import Told
from tfdyno.view.bench_export import exported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "data" / "scripts" / "slowable.py"
SLEEP, SEED = "TFDYNO_PROOF_SLEEP_S", "TFDYNO_PROOF_SEED"
_SEEDS = (1, 2)
"""Of A and B in turns."""
SLOWDOWN_RATIO = 0.05
SAMPLE_SLOWDOWN_RATIO = 0.25
SAMPLE_PROTOCOL = Protocol(least_runs=3, most_runs=3, least_samples=12, most_s=2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One call of the job, kept as one file."""

    name: str
    slow: bool = False
    turns: bool = False
    """Whether it measures A and B in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    pairs: int
    """Of the same workload twice."""
    slowdowns: int
    repeats: int
    """Benches in a row that should agree; shared with ``pairs`` unless these are in turns."""
    protocol: Protocol
    slowdown_ratio: float
    folder: Path
    turns: bool = False

    @property
    def chain(self) -> tuple[Bench, ...]:
        """Plain benches one after the other; the first says how long a step is."""
        count = self.repeats if self.turns else max(self.pairs, self.repeats)
        return tuple(Bench(name=f"plain-{at:03}") for at in range(count + 1))

    @property
    def same(self) -> tuple[Bench, ...]:
        """A/A sessions in turns."""
        count = self.pairs if self.turns else 0
        return tuple(Bench(name=f"turns-same-{at:03}", turns=True) for at in range(count))

    @property
    def slowed(self) -> tuple[Bench, ...]:
        """Sessions in turns, or slowed and plain benches that go on from the chain."""
        return tuple(
            Bench(name=f"turns-slow-{at:03}", slow=True, turns=True)
            if self.turns
            else Bench(name=f"{'back' if at % 2 else 'slow'}-{at:03}", slow=at % 2 == 0)
            for at in range(self.slowdowns)
        )

    def path(self, one: Bench) -> Path:
        """The JSON file of a bench."""
        return self.folder / f"{one.name}.json"


def prove(plan: Plan, say: Callable[[str], None]) -> Proof:
    """Make all benches that are not there yet, and compare them in pairs.

    Raises:
        TfdynoError: A bench failed; what was measured before it is kept.
    """
    benches = (*plan.chain, *plan.same, *plan.slowed)
    plan.folder.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(benches, start=1):
        if plan.path(one).exists():
            say(f"{number} of {len(benches)}: {one.name} is there")
            continue
        sleep_s = _sleep_s(plan) if one.slow else 0.0
        said = f", {1e3 * sleep_s:.2f} ms of sleep" if sleep_s else ""
        say(f"{number} of {len(benches)}: {one.name}{said}")
        _measure(plan, one, sleep_s)
    chain = _in_a_row(plan, plan.chain)
    first = measurements_at(str(plan.path(plan.chain[0])))[0]
    slowed = _sessions(plan, plan.slowed) if plan.turns else (
        _in_a_row(plan, (plan.chain[-1], *plan.slowed)))  # fmt: skip
    return Proof(
        slowdown_ratio=plan.slowdown_ratio,
        step_s=summary(first).median_s,
        first=first,
        turns=plan.turns,
        same=_sessions(plan, plan.same) if plan.turns else chain,
        repeated=chain,
        slowed=slowed,
    )


def _sleep_s(plan: Plan) -> float:
    """A fixed share of the step that the very first bench measured."""
    first = measurements_at(str(plan.path(plan.chain[0])))[0]
    return plan.slowdown_ratio * summary(first).median_s


def _measure(plan: Plan, one: Bench, sleep_s: float) -> None:
    """One bench through the real job, as a JSON file."""
    a, b = (Recipe(seed=seed) for seed in _SEEDS)
    question = Question(
        workload=Workload(reference=str(SCRIPT), kind="script"),
        recipe=a if one.turns else Recipe(),
        against=b if one.turns else None,
        protocol=plan.protocol,
        label=one.name,
        folder=plan.folder / "results",
    )
    with _variables({SLEEP: repr(sleep_s), SEED: str(_SEEDS[1]) if one.turns else ""}):
        measured = [replace(side, task=replace(side.task, reference=SCRIPT.name))
                    for side in bench(question)]  # fmt: skip
    told = [
        Told(measurement=side, summary=summary(side), medians_s=run_medians_s(side.runs))
        for side in measured
    ]
    comparison = compare(*measured) if one.turns else None
    write_atomic(plan.path(one), exported(plan.path(one), told, comparison))


@contextmanager
def _variables(given: dict[str, str]) -> Iterator[None]:
    """Set for the children of this process, and put back."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _in_a_row(plan: Plan, benches: Sequence[Bench]) -> tuple[Pairing, ...]:
    """Each bench against the one before it."""
    return tuple(
        _pairing(f"{left.name} → {right.name}", not right.slow,
                 [str(plan.path(one)) for one in (left, right)])
        for left, right in pairwise(benches)
    )  # fmt: skip


def _sessions(plan: Plan, benches: Sequence[Bench]) -> tuple[Pairing, ...]:
    """The two sides of each file."""
    return tuple(_pairing(one.name, False, [str(plan.path(one))]) for one in benches)


def _pairing(name: str, faster: bool, places: Sequence[str]) -> Pairing:
    """Two measurements compared by the real job."""
    base, other = compare_all(places)
    assert other.comparison
    kinds = {one.kind for side in (base, other) for one in side.summary.instabilities}
    return Pairing(name=name, faster=faster, comparison=other.comparison,
                   doubts=tuple(sorted(kinds)))  # fmt: skip


def _plan(given: argparse.Namespace, folder: Path) -> Plan:
    if given.sample:
        return Plan(pairs=1, slowdowns=1, repeats=0, protocol=SAMPLE_PROTOCOL, folder=folder,
                    slowdown_ratio=SAMPLE_SLOWDOWN_RATIO)  # fmt: skip
    return Plan(pairs=given.a_a, slowdowns=given.slowdown, repeats=given.repeat, folder=folder,
                protocol=Protocol(), slowdown_ratio=SLOWDOWN_RATIO, turns=given.turns)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write the page; 1 where the proof fails, 3 where a bench does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--a-a", type=int, default=40, metavar="N", help="default 40")
    parser.add_argument("--slowdown", type=int, default=20, metavar="N", help="default 20")
    parser.add_argument("--repeat", type=int, default=0, metavar="N",
                        help="pairs of benches that should agree; shared with --a-a")  # fmt: skip
    parser.add_argument("--turns", action="store_true", help="A/A and slowdown by --against")
    parser.add_argument("--folder", type=Path, help="where benches are kept, to go on later")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "bench-proof.md")
    parser.add_argument("--sample", action="store_true", help="one of each, 25 %% slower, no page")
    given = parser.parse_args(words)
    if min(given.a_a, given.slowdown, given.repeat) < 0 or not (given.a_a or given.slowdown
                                                                or given.repeat):  # fmt: skip
        parser.error("give counts of 0 or more, and one above 0")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="tfdyno-proof-"))
    print(f"benches are kept in {folder}; --folder {folder} goes on there", file=sys.stderr)
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
