"""Sweep the card of this machine and keep what was found for every later estimate."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfdyno.catalog.generations import software
from tfdyno.catalog.gpus import find
from tfdyno.catalog.offers import data_dir
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.clock import today
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.flags import with_flags
from tfdyno.core.base.process_limits import allowed
from tfdyno.core.choose.card_file import CPU, CardFile, Condition, Verdict
from tfdyno.core.choose.generation import Framework
from tfdyno.core.messages.bench import ALL_REDUCE, MeasureAllReduce
from tfdyno.core.messages.calibrate import SWEEP, CardSwept, Execution, Peaks, SweepCard, Where
from tfdyno.jobs.bench._card_condition import CardState, other_cpu_ratio
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.trace import interpreter_named
from tfdyno.jobs.holders.room import refuse
from tfdyno.jobs.holders.words import names
from tfdyno.jobs.machine.card_files import reference
from tfdyno.model.measure.statistics import median
from tfdyno.model.time.bus_bandwidth import bus_bytes_per_s
from tfdyno.model.time.calibrate.verdict import verdict
from tfdyno.model.time.calibrate.windows import Read, read_windows
from tfdyno.model.time.kernel_time import unit_of
from tfdyno.probe.base import pci, processors
from tfdyno.probe.base.host import this_host
from tfdyno.probe.holders.cards import look
from tfdyno.probe.python.versions import brings
from tfdyno.probe.telemetry.telemetry import Sampler
from tfdyno.store.card_files import CardFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.hardware import Gpu

LEAST_S, MOST_S = 10.0, 3600.0
"""Importing a framework and building the first chains takes some seconds."""
GRACE_S = 240.0
"""Beyond its time, for the import and the fewest kernels, before the child counts as hung."""
FEWEST = 10
"""The fewest kernels with which an estimate uses a sweep."""
EXCHANGE_BYTES = (1 << 24, 1 << 27)
EXCHANGE_S, WITHOUT_GRAPHS_S = 8.0, 20.0
NO_GRAPHS = {"--xla_gpu_enable_command_buffer": ""}
"""The flag of XLA that takes all kernels out of CUDA graphs."""
ROOM_RATIO = 0.2
"""The share of a card's memory for the results of a chain: the operands of all chains lie beside
them."""
BUSY_RATIO = 0.15
"""The share of the time that others keep a card busy; a desktop keeps below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateRequest:
    """What is swept, and for how long."""

    seconds_s: float = 120.0
    card: str = ""
    """``cpu``, or the number of a GPU; empty: the first GPU, and the CPUs where there is none."""
    framework: Framework | Literal[""] = ""
    """Empty: TensorFlow where it is installed, else JAX."""
    python: str = ""
    shared: bool = False
    """Sweep a card although others compute on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What a sweep left."""

    card: CardFile
    verdict: Verdict
    path: Path
    takes_effect: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    where: Where
    index: int
    state: CardState
    framework: Framework
    python: str


def calibrate(
    request: CalibrateRequest,
    *,
    progress: Callable[[str], None] = silent,
) -> Calibrated:
    """Sweep a card and write its card file.

    Args:
        request: What is swept.
        progress: Called with a line at every stage.

    Raises:
        UsageError: Nothing can be swept as asked.
        ToolError: The sweep failed before it had measured anything.
        KeyboardInterrupt: After what was measured was put aside.
    """
    place = _place(request)
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        lines = Path(folder) / "windows.jsonl"
        began_s = time.monotonic()
        told, sampler, ended = _swept(request, place, lines, progress)
        found = read_windows(_lines(lines))
    if not found.kernels:
        if isinstance(ended, (TfdynoError, KeyboardInterrupt)):
            raise ended
        raise ToolError("the sweep measured nothing", remedy="give it more time: --seconds 120")
    if ended is None and place.where == "gpu":
        found = _with_extras(found, place, progress)
    card = _card_of(place, found, told, sampler, ended, time.monotonic() - began_s)
    takes_effect = ended is None and len(card.kernels) >= FEWEST
    path = CardFiles(folder=data_dir()).write(card, finished=takes_effect)
    if isinstance(ended, KeyboardInterrupt):
        ended.add_note(_not_used(card, path))
        raise ended
    gpu = gpu_of(card)
    judged = verdict(card, gpu, time_model(card.generation), reference())
    notes = () if takes_effect else (_not_used(card, path),)
    return Calibrated(card=card, verdict=judged, path=path, takes_effect=takes_effect, notes=notes)


def shared_copy(card: CardFile) -> CardFile:
    """Return a sweep without what may name a machine or a user: messages may hold paths."""
    return replace(card, left_out=(), ended_by="ended early" if card.ended_by else "")


def gpu_of(card: CardFile) -> Gpu | None:
    """Find the row of a swept card; None for CPUs and cards that the catalogue does not have."""
    try:
        return None if card.card == CPU else find(card.card)
    except UsageError:
        return None


def _not_used(card: CardFile, path: Path) -> str:
    kept = f"the {len(card.kernels)} kernels measured until then are kept in {path}"
    why = card.ended_by or "too little time"
    return f"The sweep did not end ({why}): {kept}; no estimate uses them."


def _place(request: CalibrateRequest) -> _Place:
    """Return which card is swept, by what; raises ``UsageError`` before any work."""
    if not LEAST_S <= request.seconds_s <= MOST_S:
        raise UsageError(
            f"a sweep of {request.seconds_s:g} s is not possible",
            why="importing the framework alone takes some seconds",
            remedy=f"give {LEAST_S:g} to {MOST_S:g} s",
        )
    asked = request.card
    if asked and asked != CPU and not asked.isdecimal():
        raise UsageError(
            f"there is no card '{asked}' to sweep",
            remedy="give cpu, or the number of a GPU as nvidia-smi counts",
        )
    index = int(asked) if asked.isdecimal() else 0
    state = CardState(index)
    where: Where = "cpu" if asked == CPU or not _has_gpu(state) else "gpu"
    if asked.isdecimal() and state.card is None and (where == "cpu" or state.count):
        count = f"the driver shows {state.count}" if state.count else "this machine shows no GPU"
        raise UsageError(f"there is no GPU {asked}", why=count, remedy="tfdyno doctor looks closer")
    if where == "gpu" and not request.shared:
        _check_free(state, index)
    python = interpreter_named(request.python)
    framework = request.framework or _installed(python)
    return _Place(where=where, index=index, state=state, framework=framework, python=python)


def _has_gpu(state: CardState) -> bool:
    return state.card is not None or bool(pci.cards(this_host()))


def _check_free(state: CardState, index: int) -> None:
    """Refuse a card on which others compute: their share would be taken for its speed."""
    held = [one for one in look().cards if one.index == index]
    refuse(held)
    busy = state.reading.utilisation_ratio or 0.0
    who = "; ".join(names(one.holders) for one in held if one.holders)
    if not who and busy <= BUSY_RATIO:
        return
    who = who or f"it is {busy:.0%} busy"
    raise UsageError(
        f"GPU {index} is in use",
        why=f"{who}; a sweep beside others would measure their share of the card",
        remedy="end them, or add --shared",
    )


def _installed(python: str) -> Framework:
    names: tuple[Framework, ...] = ("tensorflow", "jax")
    for name in names:
        if brings(python, name):
            return name
    raise UsageError(
        "a sweep needs TensorFlow or JAX", why=f"{python} has neither",
        remedy="pip install 'tfdyno[tf]', or name an interpreter that has it with --python",
    )  # fmt: skip


def _swept(
    request: CalibrateRequest, place: _Place, lines: Path, progress: Callable[[str], None]
) -> tuple[CardSwept, Sampler, BaseException | None]:
    """Return what the child told, who watched it, and what ended it early."""
    executions: tuple[Execution, ...] = ("xla", "graph") if place.where == "gpu" else ("graph",)
    sweep = SweepCard(
        framework=place.framework,
        where=place.where,
        executions=("xla",) if place.framework == "jax" else executions,
        seconds_s=request.seconds_s,
        fewest=2 * FEWEST,
        file=lines,
        peaks=_peaks(place),
    )
    looked = False

    def stage(line: str) -> None:
        nonlocal looked
        progress(line)
        if place.where == "gpu" and not looked and " kernels" in line:
            place.state.look_at_link()
            looked = True

    with Sampler(visible=None) as sampler:
        try:
            told = run_child(
                SWEEP, sweep, progress=stage, python=place.python,
                timeout_s=request.seconds_s + GRACE_S, env=_environment(place),
                hide_gpu=place.where == "cpu", doing="the sweep", started=sampler.watch,
            )  # fmt: skip
        except UsageError:
            raise
        except (TfdynoError, KeyboardInterrupt) as error:
            return CardSwept(), sampler, error
    return told, sampler, None


def _peaks(place: _Place) -> Peaks:
    try:
        gpu = find(place.state.card.slug) if place.state.card else None
    except UsageError:
        gpu = None
    if gpu is None or place.where == "cpu":
        return Peaks()
    flops = {
        name: unit_of(gpu, dtype, tf32_allowed=name == "tf32")[1]
        for name, dtype in (("f32", "f32"), ("tf32", "f32"), ("f16", "f16"), ("bf16", "bf16"))
    }
    room = ROOM_RATIO * gpu.memory_bytes
    return Peaks(flops_per_s=flops, bytes_per_s=gpu.memory_bytes_per_s, room_bytes=room)


def _environment(place: _Place) -> dict[str, str]:
    if place.where == "cpu":
        return {"KERAS_BACKEND": "tensorflow"}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if os.environ.get("CUDA_VISIBLE_DEVICES") is None:
        return {**quiet, "CUDA_VISIBLE_DEVICES": str(place.index)}
    return quiet


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _with_extras(found: Read, place: _Place, progress: Callable[[str], None]) -> Read:
    """Add what other processes have to measure: kernels outside CUDA graphs, the exchange."""
    pace = replace(found.pace, kernel_without_graphs_s=_without_graphs(place, progress))
    if place.state.count > 1 and place.framework == "tensorflow":
        pace = replace(pace, exchange_bytes_per_s=_exchange(place, progress))
    return replace(found, pace=pace)


def _without_graphs(place: _Place, progress: Callable[[str], None]) -> float:
    """Return seconds of the smallest kernel where no CUDA graph holds it; 0.0 where that failed."""
    progress("the smallest kernel without CUDA graphs")
    flags = with_flags(os.environ.get("XLA_FLAGS", ""), NO_GRAPHS)
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        lines = Path(folder) / "windows.jsonl"
        sweep = SweepCard(
            framework=place.framework, where="gpu", executions=("xla",), file=lines,
            seconds_s=WITHOUT_GRAPHS_S, smallest=True, most_rounds=40,
        )  # fmt: skip
        try:
            run_child(
                SWEEP, sweep, python=place.python, hide_gpu=False,
                timeout_s=WITHOUT_GRAPHS_S + GRACE_S, doing="the sweep without CUDA graphs",
                env={**_environment(place), "XLA_FLAGS": flags},
            )  # fmt: skip
        except TfdynoError:
            return 0.0
        return min((one.kernel_s for one in read_windows(_lines(lines)).kernels), default=0.0)


def _exchange(place: _Place, progress: Callable[[str], None]) -> float:
    """Measure the bus bandwidth of the largest all-reduce among the cards; 0.0: that failed."""
    progress(f"the exchange of {place.state.count} cards")
    asked = MeasureAllReduce(between="cards", sizes_bytes=EXCHANGE_BYTES, budget_s=EXCHANGE_S)
    try:
        told = run_child(
            ALL_REDUCE, asked, python=place.python, hide_gpu=False,
            timeout_s=EXCHANGE_S + GRACE_S, doing="the exchange of the cards",
        )  # fmt: skip
        largest = told.sizes[-1]
        return bus_bytes_per_s(largest.size_bytes, told.replicas, median(largest.times_s))
    except (TfdynoError, LookupError, ValueError):
        return 0.0


def _card_of(
    place: _Place, found: Read, told: CardSwept, sampler: Sampler,
    ended: BaseException | None, sweep_s: float,
) -> CardFile:  # fmt: skip
    host = this_host()
    name, slug = processors.name(host) or "CPU", CPU
    if place.where == "gpu":
        name = told.device or (place.state.card.name if place.state.card else "")
        slug = _slug(name, place)
    version = told.version or found.version
    sliced = name.partition(" MIG ")[2]
    failed = (f"{what} ({why})" for what, why in told.failed.items())
    return CardFile(
        card=slug,
        name=name,
        framework=place.framework,
        version=version,
        generation=software(place.framework, version, "installed").generation,
        driver=place.state.driver if place.where == "gpu" else "",
        made_on=today().isoformat(),
        sweep_s=round(sweep_s, 1),
        kernels=found.kernels,
        pace=found.pace,
        condition=place.state.condition(sampler.telemetry(), sliced)
        if place.where == "gpu"
        else Condition(other_cpu_ratio=other_cpu_ratio(sampler.telemetry())),
        processors=len(allowed()),
        left_out=(*told.left_out, *failed),
        ended_by="" if ended is None else str(ended).rstrip(".") or "interrupted",
    )


def _slug(name: str, place: _Place) -> str:
    """Return the row of the catalogue of a GPU, by what the framework and the driver call it."""
    known = place.state.card.slug if place.state.card and not place.state.card.mig else ""
    if known:
        return known
    try:
        return find(name).slug
    except UsageError:
        return name.lower().replace(" ", "-") or "unknown"
