"""Run a child with the compiled programs that are kept, and keep what it compiles."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tfdyno.core.base.codec import learned, to_builtins, to_json, write_atomic
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.base.units import format_bytes
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.compiled.first_step import FirstStep, StepTimes, outcome_words, times_after
from tfdyno.jobs.compiled.flags import KNOWN, PLACES, own_choice, variables_for
from tfdyno.jobs.compiled.store import is_off, program_store, why_unused
from tfdyno.probe.base.host import this_host
from tfdyno.probe.files.folder_events import FolderEvents
from tfdyno.probe.python.compilers import Compiler, Framework, compiler, known_flags, machine
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.probe.python.compilers import Compiler
    from tfdyno.store.compiled.programs import ProgramStore, View

Result = TypeVar("Result")
ROOM_BYTES = 512 << 20
"""The room on the disk below which nothing is added: a program that TensorFlow cannot write fails
the step, and reads as if a GPU were out of memory."""
BEGINNINGS = ("XLA_", "TF_", "CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "LD_", "OMP_", "MKL_", "HIP_")
"""How variables begin that reach a compiler, or the libraries that it tries out."""
HARMLESS = (
    *("TF_CONFIG", "TF_CPP_", "TF_FORCE_GPU_ALLOW_GROWTH", "CUDA_VISIBLE_DEVICES"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_"),
)
"""Beginnings of those that do not: who takes part, what is printed, which cards there are."""
SETTINGS = ("deterministic", "precision", "threads_intra")
"""The settings of a recipe that TensorFlow is told by a call, not by a variable."""
WORD = b"XLA_FLAGS"
KEY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiling:
    """A child that compiles."""

    workload: Workload
    recipe: Recipe
    framework: Framework
    python: str
    variables: Mapping[str, str]
    """The variables to set over those of this process."""
    doing: str
    """``train``, ``diagnose``: their first steps differ."""
    data: str = ""

    @property
    def title(self) -> str:
        """The workload as it is called in progress."""
        return self.workload.reference.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What came of the programs, beside what came of the child."""

    notes: tuple[str, ...] = ()
    is_loaded: bool = False
    """Whether a program came from an earlier process."""


def with_programs(
    compiling: Compiling,
    run: Callable[[Mapping[str, str], Callable[[str], None]], Result],
    progress: Callable[[str], None],
) -> tuple[Result, Kept]:
    """Run a child that takes and keeps compiled programs; without any where they cannot be kept.

    Where it fails because a program could not be written (a full disk), it runs again without.

    Args:
        compiling: What compiles, and for what.
        run: Runs it: takes variables to set over its own, and where to tell progress.
        progress: Called with the child's lines, and with what is compiled and about how long.
    """
    variables = {**os.environ, **compiling.variables}
    store = program_store(variables)
    if is_off(variables) or own_choice(compiling.framework, variables):
        return run({}, progress), Kept()
    if why := why_unused(store, variables):
        return run({}, progress), Kept(notes=(_unused(why),))
    try:
        session = _opened(compiling, store, variables)
    except (OSError, TfdynoError) as error:
        why = (error.strerror or "") if isinstance(error, OSError) else ""
        return run({}, progress), Kept(notes=(_unused(f"{store.root}: {why or error}"),))
    if session is None:
        return run({}, progress), Kept()
    with contextlib.closing(session):
        try:
            found = run(session.variables, lambda line: session.heard(line, progress))
        except TfdynoError:
            session.forget()
            if not session.view.failed_writes:
                raise
        else:
            session.is_whole = True
            return found, session.kept()
    progress(say("a compiled program could not be kept: starting again without"))
    why = f"{store.root}: no space is left, or it cannot be written"
    return run({}, progress), Kept(notes=(_unused(why),))


def _unused(why: str) -> str:
    return f"Compiled programs are not kept: {why}"


class _Session:
    """One child, and its view of the programs."""

    def __init__(
        self,
        compiling: Compiling,
        view: View,
        variables: Mapping[str, str],
        *,
        has_room: bool,
    ) -> None:
        self.view, self.variables = view, variables
        self.is_whole = compiling.framework == "tensorflow"  # JAX may leave half a file at its end
        self._key = step_key(compiling.workload, compiling.recipe, compiling.data, compiling.doing)
        self._events = FolderEvents(view.place("programs"))
        known = _times(view.store.time_of(view.key, self._key))
        self.first = FirstStep(
            title=compiling.title,
            known=known,
            has_all=bool(known.programs) and set(known.programs) <= set(view.linked["programs"]),
            ended=self._ended,
        )
        full = f"{view.store.root} has less than {format_bytes(ROOM_BYTES)} free"
        self._notes = [] if has_room else [_unused(full)]

    def heard(self, line: str, progress: Callable[[str], None]) -> None:
        """Pass a line of the child on, and tell of its first step."""
        for one in self.first.lines(line):
            progress(one)

    def kept(self) -> Kept:
        """Return what came of it, the child having ended well."""
        return Kept(notes=tuple(filter(None, self._notes)), is_loaded=bool(self._loaded))

    def forget(self) -> None:
        """Drop what a child that failed had taken: the next one compiles it anew."""
        names = self._loaded if not self.first.took_s else frozenset()
        for name in names:
            with contextlib.suppress(OSError):
                self.view.linked["programs"][name].unlink(missing_ok=True)

    def close(self) -> None:
        """Keep what is new, and give the folder back."""
        if self.is_whole:
            self.view.collect()
        for kind, names in self.view.linked.items():
            self.view.touch(kind, self._loaded if kind == "programs" else frozenset(names))
        self._events.close()
        self.view.close()
        with contextlib.suppress(OSError):
            self.view.store.trim()

    @property
    def _loaded(self) -> frozenset[str]:
        return self._events.opened() & self.view.linked["programs"].keys()

    def _ended(self) -> None:
        """Keep at once what the first step compiled, however long the child runs."""
        self.view.collect()
        loaded, made = self._loaded, frozenset(self.view.made["programs"])
        self._notes.append(outcome_words(self.first, len(loaded), len(made)))
        if times := times_after(self.first, loaded, made):
            self.view.store.note_time(self.view.key, self._key, to_json(times))


def _opened(
    compiling: Compiling, store: ProgramStore, variables: Mapping[str, str]
) -> _Session | None:
    """Return a view for the child; None where its framework cannot keep programs.

    Raises:
        OSError, TfdynoError: The folder cannot be written.
    """
    host = this_host(compiling.python)
    found = compiler(host, compiling.framework)
    if found is None:
        return None
    known = _known(found, store)
    facts = machine(host, variables.get("CUDA_VISIBLE_DEVICES"))
    key = software_key(found, facts, variables, compiling.recipe, source_of(compiling.workload))
    about = {"framework": compiling.framework, "version": found.version, **facts}
    view = store.view(key, about, PLACES[compiling.framework])
    has_room = shutil.disk_usage(store.root).free >= ROOM_BYTES
    told = variables_for(
        compiling.framework, view, known, variables, compiling.recipe,
        has_cards="cards" in facts, has_room=has_room,
    )  # fmt: skip
    if not told:
        view.close()
        return None
    return _Session(compiling, view, told, has_room=has_room)


def _known(found: Compiler, store: ProgramStore) -> frozenset[str]:
    """Return flags that a library knows; looked up once, for that reads all of it."""
    stamp = f"{found.library} {found.size_bytes} {found.changed_at_ns} {KNOWN}"
    path = store.root / f"flags-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return frozenset(msgspec.json.decode(path.read_bytes(), type=list[str]))
    known = known_flags(found.library, KNOWN)
    store.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(path, to_json(sorted(known)))
    return known


def _times(data: bytes) -> StepTimes:
    try:
        return msgspec.json.decode(data, type=learned(StepTimes)) if data else StepTimes()
    except msgspec.DecodeError:
        return StepTimes()


def software_key(
    compiler: Compiler,
    machine: Mapping[str, str],
    variables: Mapping[str, str],
    recipe: Recipe,
    source: Path | None,
) -> str:
    """Name of the folder whose programs fit: another TensorFlow, card or flag has another.

    TensorFlow looks its programs up by the graph alone: neither its version nor ``XLA_FLAGS`` is
    part of that, so all of it is in this name.

    Args:
        compiler: That makes the programs.
        machine: What they are made for.
        variables: All of the child's environment, without the flags that keep programs.
        recipe: Of the run.
        source: The user's own file, which counts where it speaks of ``XLA_FLAGS``.
    """
    facts = {
        "library": [compiler.size_bytes, compiler.changed_at_ns, compiler.versions],
        "machine": dict(machine),
        "variables": {name: value for name, value in sorted(variables.items()) if matters(name)},
        "recipe": [str(getattr(recipe, name)) for name in SETTINGS],
        "source": _with_flags(source),
    }
    return _digest(to_json(facts))


def matters(name: str) -> bool:
    """Return whether a variable may change what is compiled."""
    return name.startswith(BEGINNINGS) and not name.startswith(HARMLESS)


def step_key(workload: Workload, recipe: Recipe, data: str, doing: str) -> str:
    """Name of a step whose first run was timed: the same workload under the same recipe."""
    return _digest(to_json([to_builtins(workload), to_builtins(recipe), data, doing]))


def source_of(workload: Workload) -> Path | None:
    """Return the user's file; None where the workload is none."""
    path = Path(workload.reference.partition(":")[0])
    return path if path.suffix == ".py" and path.is_file() else None


def _with_flags(source: Path | None) -> str:
    if source is None:
        return ""
    text = source.read_bytes()
    return _digest(text) if WORD in text else ""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:KEY]
