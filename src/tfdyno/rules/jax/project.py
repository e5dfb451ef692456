"""All files of a project, judged together: what one hands to Keras may stand in another."""

from __future__ import annotations

import functools
import posixpath
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.doctor.move import Effect, Obstacle
from tfdyno.rules.causes import Cause, read_group
from tfdyno.rules.jax.finds import File, Find
from tfdyno.rules.jax.judge import finds, uses_keras
from tfdyno.rules.jax.places import Places
from tfdyno.rules.migration.hits import Hit, matches
from tfdyno.rules.migration.parse import Parsed, notebook, python
from tfdyno.rules.migration.project import Project
from tfdyno.rules.rewrite.script import Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tfdyno.core.doctor.finding import Verdict
    from tfdyno.rules.match import Match

GROUP = "move"
_ROUNDS = 3
"""Files through which a function is handed on until Keras has it."""
_EFFECTS: dict[str, Effect] = {"error": "stops", "warning": "results", "note": "speed"}
_UNKNOWN = "un"
"""Begins the names of causes of which the effect cannot be told."""
_BESIDE = frozenset({"saved", "backend_set", "no_keras", "keras2", "tensor_method"})
"""Causes that are no matter of what is run on JAX: the backend is set, and fit is Keras' own."""
_LIKELY = frozenset({"branch", "tensor_method", "one_card", "new_shapes", "strings"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One file with its places."""

    label: str
    parsed: Parsed
    file: File
    finds: tuple[Find, ...]


def causes() -> tuple[Cause, ...]:
    """Return the causes of ``data/move.toml``; raises ``ToolError`` for a damaged file."""
    return _causes()


@functools.cache
def _causes() -> tuple[Cause, ...]:
    path = Path(__file__).parent / "data" / f"{GROUP}.toml"
    return read_group(GROUP, path.read_text(encoding="utf-8"))


def cause_of(name: str) -> Cause:
    """Return the cause of a place, by its name without the group."""
    return next(one for one in causes() if one.id == f"{GROUP}.{name}")


def effect_of(cause: str) -> Effect:
    """Return what a place of a cause does to the move."""
    return "unknown" if cause.startswith(_UNKNOWN) else _EFFECTS[cause_of(cause).severity]


def first_stop(script: Path) -> Find | None:
    """Return what most of all keeps Keras from running a script on JAX; None: nothing found does.

    What it imports from beside it is not read; what does not parse, running it will tell.

    Args:
        script: The file; None is returned of what is no file of Python.
    """
    if script.suffix != ".py" or not script.is_file():
        return None
    text = script.read_text(errors="replace")
    found, _ = judged([script.name], lambda _name: text)
    stops = [
        one for each in found for one in each.finds
        if one.cause not in _BESIDE and effect_of(one.cause) == "stops"
    ]  # fmt: skip
    return min(stops, key=lambda one: (cause_of(one.cause).rank, one.line), default=None)


def judged(
    paths: Iterable[str], read: Callable[[str], str]
) -> tuple[tuple[Judged, ...], tuple[str, ...]]:
    """Look through the Python files and notebooks of a project.

    Args:
        paths: Files as the user shall see them.
        read: Gives the text of one; may raise ``OSError``, ``ValueError`` or ``TfdynoError``.

    Returns:
        What was found in each file, and what could not be read, in words.
    """
    paths = tuple(one for one in paths if PurePath(one).suffix in (".py", ".pyw", ".ipynb"))
    project, notes = Project(paths, read), list[str]()
    files: dict[str, tuple[Parsed, Script]] = {}
    texts: dict[str, str] = {}
    for path in paths:
        try:
            texts[path] = read(path)
            parsed = _parsed(path, texts[path], project)
        except TfdynoError as error:
            notes.append(str(error))
            continue
        except (OSError, ValueError) as error:
            notes.append(f"{path} was not read: {getattr(error, 'strerror', '') or error}.")
            continue
        notes += parsed.notes
        if parsed.module and parsed.tree:
            text = texts[path]
            source = "\n".join(parsed.module.lines) if path.endswith(".ipynb") else text
            files[path] = (parsed, Script(source, tree=parsed.tree, found=parsed.module.sites))
    found = []
    for path, file in _placed(files).items():
        is_own = functools.partial(_is_own, path, frozenset(paths))
        one = Judged(label=path, parsed=files[path][0], file=file, finds=finds(file, is_own))
        found.append(one)
    return _with_keras(tuple(found)), tuple(notes)


def _parsed(path: str, text: str, project: Project) -> Parsed:
    values = {"keras_backend": "jax"}
    if PurePath(path).suffix == ".ipynb":
        return notebook(path, text, values, project.of(path))
    return python(path, text, values, project.of(path))


def _placed(files: dict[str, tuple[Parsed, Script]]) -> dict[str, File]:
    """Find where the code of each file runs, as other files hand its functions over."""
    given: dict[str, dict[str, set[str]]] = {path: {"step": set(), "data": set()} for path in files}
    placed: dict[str, File] = {}
    for _ in range(_ROUNDS if len(files) > 1 else 1):
        for path, (_, script) in files.items():
            places = Places(script.tree, script.sites, given[path])
            placed[path] = File(script=script, places=places)
            for where, names in places.foreign.items():
                for name in names:
                    other, _, function = name.partition(":")
                    if other in given:
                        given[other][where].add(function)
    return placed


def _with_keras(found: tuple[Judged, ...]) -> tuple[Judged, ...]:
    """Add that nothing of a project is Keras', where TensorFlow is used."""
    if any(uses_keras(one.file) for one in found):
        return found
    for place, one in enumerate(found):
        site = next((each for each in one.file.script.sites if each.imports("tf")), None)
        if site is not None:
            node = site.node
            more = Find(cause="no_keras", node=node, name="tensorflow")  # type: ignore[arg-type]
            whole = Judged(
                label=one.label, parsed=one.parsed, file=one.file, finds=(more, *one.finds)
            )
            return (*found[:place], whole, *found[place + 1 :])
    return found


def _is_own(path: str, paths: frozenset[str], name: str) -> bool:
    """Return whether an import of a file is of another file that was read."""
    dots = len(name) - len(name.lstrip("."))
    folder = posixpath.dirname(path)
    for _ in range(dots - 1):
        folder = posixpath.dirname(folder)
    inner = name.lstrip(".").replace(".", "/")
    starts = (folder,) if dots else (folder, "")
    bases = [posixpath.join(start, inner) if inner else start for start in starts]
    return any(
        base.startswith(f"{one}/") or one in (f"{base}.py", f"{base}/__init__.py")
        for base in bases
        for one in paths
    ) or any(one.startswith(f"{base}/") for base in bases if base for one in paths)


def obstacles(found: Iterable[Judged]) -> tuple[Obstacle, ...]:
    """Return the places of all files in plain words."""
    return tuple(_obstacle(each, one) for one in found for each in one.finds)


def _obstacle(found: Find, one: Judged) -> Obstacle:
    module = one.parsed.module
    assert module is not None
    return Obstacle(
        cause=f"{GROUP}.{found.cause}", effect=effect_of(found.cause), file=one.label,
        source=module.source(found.line), text=module.text(found.line), name=found.name,
        instead=found.instead, is_safe=found.is_safe,
    )  # fmt: skip


def move_matches(places: Iterable[Obstacle], folder: str = "") -> tuple[Match, ...]:
    """Return one match for each cause, with every line as its evidence.

    Args:
        places: Of all files.
        folder: That the files are named from, as the user shall see it in commands.
    """
    hits = [
        Hit(
            cause=one.cause.partition(".")[2], source=one.source, text=one.text, name=one.name,
            instead=one.instead, verdict=_verdict(one),
            values={"script": shlex.quote(posixpath.join(folder, one.file))},
        )
        for one in places
    ]  # fmt: skip
    return matches(hits, group=GROUP, most=len(hits))


def _verdict(one: Obstacle) -> Verdict:
    if one.effect == "unknown":
        return "possible"
    return "likely" if one.cause.partition(".")[2] in _LIKELY else "proven"
