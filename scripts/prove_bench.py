"""Measure how often bench and compare err: A/A runs, an injected slowdown, repeated benches.

A plain bench, a slowed one, a plain one and so on: every bench is compared with the one before it,
where a slowdown begins or ends, and with the one before that, which is equal. Comparisons share
benches and are not fully independent of each other. With ``--turns`` each A/A and each slowdown is
a session of its own, ``bench --against``: A and B differ in their seed, and the workload sleeps
where it finds B's.
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

    from tfdyno.core.measurement import Verdict

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
    """Of the same workload twice, and in turns as many of a slowdown."""
    protocol: Protocol
    slowdown_ratio: float
    folder: Path
    turns: bool = False

    @property
    def chain(self) -> tuple[Bench, ...]:
        """Plain and slowed benches one after the other; the first says how long a step is."""
        count = 1 if self.turns else self.pairs + 2
        return tuple(
            Bench(name=f"{'slow' if at % 2 else 'plain'}-{at:03}", slow=at % 2 == 1)
            for at in range(count)
        )

    @property
    def sessions(self) -> tuple[Bench, ...]:
        """In turns: an equal pair, a slowdown, an equal pair and so on."""
        return tuple(
            Bench(name=f"turns-{kind}-{at:03}", slow=kind == "slow", turns=True)
            for at in range(self.pairs if self.turns else 0)
            for kind in ("same", "slow")
        )

    def path(self, one: Bench) -> Path:
        """The JSON file of a bench."""
        return self.folder / f"{one.name}.json"


def prove(plan: Plan, say: Callable[[str], None]) -> Proof:
    """Make all benches that are not there yet, and compare them in pairs.

    Raises:
        TfdynoError: A bench failed; what was measured before it is kept.
    """
    benches = (*plan.chain, *plan.sessions)
    plan.folder.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(benches, start=1):
        if plan.path(one).exists():
            say(f"{number} of {len(benches)}: {one.name} is there")
            continue
        sleep_s = _sleep_s(plan) if one.slow else 0.0
        said = f", {1e3 * sleep_s:.2f} ms of sleep" if sleep_s else ""
        say(f"{number} of {len(benches)}: {one.name}{said}")
        _measure(plan, one, sleep_s)
    first = measurements_at(str(plan.path(plan.chain[0])))[0]
    pairings = (*_apart(plan), *_in_turns(plan))
    return Proof(
        slowdown_ratio=plan.slowdown_ratio,
        step_s=summary(first).median_s,
        first=first,
        turns=plan.turns,
        same=tuple(one for one in pairings if not one.slowed),
        slowed=tuple(one for one in pairings if one.slowed),
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


def _apart(plan: Plan) -> Iterator[Pairing]:
    """Each bench against the one before it, and the one before that."""
    for left, right in (*pairwise(plan.chain), *zip(plan.chain, plan.chain[2:], strict=False)):
        wanted: Verdict = "no_difference"
        if left.slow != right.slow:
            wanted = "slower" if right.slow else "faster"
        places = [str(plan.path(one)) for one in (left, right)]
        yield _pairing(f"{left.name} → {right.name}", wanted, places)


def _in_turns(plan: Plan) -> Iterator[Pairing]:
    """The two sides of each file."""
    for one in plan.sessions:
        wanted: Verdict = "slower" if one.slow else "no_difference"
        yield _pairing(one.name, wanted, [str(plan.path(one))])


def _pairing(name: str, wanted: Verdict, places: Sequence[str]) -> Pairing:
    """Two measurements compared by the real job."""
    base, other = compare_all(places)
    assert other.comparison
    kinds = {one.kind for side in (base, other) for one in side.summary.instabilities}
    return Pairing(name=name, wanted=wanted, comparison=other.comparison,
                   doubts=tuple(sorted(kinds)))  # fmt: skip


def _plan(given: argparse.Namespace, folder: Path) -> Plan:
    if given.sample:
        return Plan(pairs=1, protocol=SAMPLE_PROTOCOL, folder=folder,
                    slowdown_ratio=SAMPLE_SLOWDOWN_RATIO)  # fmt: skip
    return Plan(pairs=given.pairs, protocol=Protocol(), folder=folder,
                slowdown_ratio=SLOWDOWN_RATIO, turns=given.turns)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write the page; 1 where the proof fails, 3 where a bench does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pairs", type=int, default=40, metavar="N", help="equal pairs; default 40"
    )
    parser.add_argument("--turns", action="store_true", help="A/A and slowdown by --against")
    parser.add_argument("--folder", type=Path, help="where benches are kept, to go on later")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "bench-proof.md")
    parser.add_argument("--sample", action="store_true", help="one of each, 25 %% slower, no page")
    given = parser.parse_args(words)
    if given.pairs < 1:
        parser.error("--pairs is 1 or more")
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
