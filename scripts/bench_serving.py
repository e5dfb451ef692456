"""Measure how fast models are served here: four servers in turns, overload, a killed worker.

All servers of the comparison run at once, the idle ones wait; every round loads each of them once,
in an order drawn anew. What counts is the ratio inside a round. A load with any error, or whose
server changed, ends the benchmark.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench_serving_overload import Kill, Overload, kill, overload
from bench_serving_page import Round, Study, claims, page
from bench_serving_servers import KINDS, ROOT, run, running, serving_folder
from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import TfdynoError, ToolError
from tfdyno.core.base.process_limits import allowed
from tfdyno.jobs.bench.load import LoadRequest, load_test
from tfdyno.probe.base import processors
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.revision import revision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLIENTS = 64
SLOW_WIDTH = 80
"""Channels of the slow model."""
Noun = TypeVar("Noun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured."""

    rounds: int
    seconds_s: float
    overload_s: float
    folder: Path

    @property
    def models(self) -> Path:
        """Where the models are written."""
        return self.folder / "models"


def compare(plan: Plan, say: Callable[[str], None]) -> tuple[Round, ...]:
    """Load every server once a round, those loads left out that are kept already."""
    places = {
        (number, kind): plan.folder / f"round-{number:02}-{kind.id}.json"
        for number in range(plan.rounds)
        for kind in KINDS
    }
    if not all(place.exists() for place in places.values()):
        with contextlib.ExitStack() as stack:
            servers = {}
            for kind in KINDS:
                say(f"starting {kind.title}")
                servers[kind] = stack.enter_context(running(kind, plan.models, plan.folder))
            for number in range(plan.rounds):
                order = random.Random(number).sample(KINDS, len(KINDS))
                for kind in order:
                    place = places[number, kind]
                    if place.exists():
                        continue
                    say(f"round {number + 1} of {plan.rounds}: {kind.title}")
                    found = _measured(servers[kind].url, plan.seconds_s, number, kind.id)
                    write_atomic(place, to_json(found, indent=2))
    return tuple(_read(place, Round) for place in places.values())


def _measured(url: str, seconds_s: float, number: int, kind: str) -> Round:
    request = LoadRequest(url=url, clients=CLIENTS, seconds_s=seconds_s, seed=number)
    result = load_test(request)
    if result.failed:
        raise ToolError(f"the load of {kind} failed", why="; ".join(result.faults))
    figures = result.stages[0].figures
    assert figures.p50_s
    assert figures.p99_s
    return Round(
        number=number,
        kind=kind,
        answers_per_s=figures.accepted_per_s,
        p50_s=figures.p50_s.best,
        p99_s=figures.p99_s.best,
        mean_batch_rows=figures.mean_batch_rows,
        requests=figures.requests,
        client_cpu_ratio=figures.client_cpu_ratio,
    )


def _kept(place: Path, kind: type[Noun], make: Callable[[], Noun]) -> Noun:
    if not place.exists():
        write_atomic(place, to_json(make(), indent=2))
    return _read(place, kind)


def _read(place: Path, kind: type[Noun]) -> Noun:
    return from_json(place.read_bytes(), kind, where=str(place))


def study(plan: Plan, say: Callable[[str], None], *, only_overload: bool) -> Study:
    """All that is measured; what is kept in the folder is not measured again."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    if not (plan.models / "slow").exists():
        say("writing the models")
        script = str(ROOT / "scripts" / "bench_serving_model.py")
        python = str(serving_folder() / "bin" / "python")
        run([python, script, str(plan.models), str(SLOW_WIDTH)], "writing the models")
    rounds = () if only_overload else compare(plan, say)
    slow = plan.models / "slow"
    flooded = _kept(
        plan.folder / "overload.json",
        Overload,
        lambda: overload(slow, plan.folder, seconds_s=plan.overload_s, say=say),
    )
    killed = _kept(
        plan.folder / "kill.json", Kill, lambda: kill(plan.models / "cnn", plan.folder, say)
    )
    return Study(
        rounds=rounds,
        seconds_s=plan.seconds_s,
        clients=CLIENTS,
        overload=flooded,
        kill=killed,
        machine=f"{len(allowed())} CPUs ({processors.name(this_host())})",
        made_on=datetime.now(UTC).date().isoformat(),
        revision=revision(),
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write the page; 1 where a claim does not hold, 2 and 3 where it cannot run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="S", help="of each load")
    parser.add_argument("--overload", action="store_true", help="only overload and the kill")
    parser.add_argument("--overload-seconds", type=float, default=60.0, metavar="S")
    parser.add_argument("--folder", type=Path, help="where loads are kept, to go on later")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "serving-speed.md")
    parser.add_argument("--sample", action="store_true", help="two rounds of 2 s, no page")
    given = parser.parse_args(words)
    if given.sample:
        given.rounds, given.seconds, given.overload_seconds = 2, 2.0, 10.0
    if given.rounds < 2:
        parser.error("give two rounds or more")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="tfdyno-serving-"))
    print(f"loads are kept in {folder}; --folder {folder} goes on there", file=sys.stderr)
    plan = Plan(rounds=given.rounds, seconds_s=given.seconds, folder=folder.resolve(),
                overload_s=given.overload_seconds)  # fmt: skip
    try:
        found = study(plan, _say, only_overload=given.overload)
    except TfdynoError as error:
        print(f"bench_serving: {error}", file=sys.stderr)
        return error.exit_code
    if given.sample or given.overload:
        print(page(found))
    else:
        write_atomic(given.out, page(found).encode())
        print(f"wrote {given.out}", file=sys.stderr)
    return 0 if all(one.holds for one in claims(found)) else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
