"""Whether source code moves to Keras' JAX backend, and each line that is in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.core.doctor.move import Obstacle, move_of
from tfdyno.jobs.doctor.doctor import Examined
from tfdyno.probe.files.source_files import SourceFiles, find, read
from tfdyno.rules.explain import diagnose
from tfdyno.rules.jax.project import causes, judged, move_matches, obstacles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.language import Language
    from tfdyno.core.doctor.finding import Finding

TARGET = "jax"
_OF_KERAS_2 = {"keras_backend": TARGET, "keras": "3"}


def check_move(
    path: Path,
    *,
    language: Language = "en",
    progress: Callable[[str], None] = lambda _stage: None,
) -> Examined:
    """Find what of a file or folder does not run on Keras' JAX backend.

    Args:
        path: A script or notebook, with what it imports from beside it, or a folder.
        language: Of all texts.
        progress: Called with a line at every stage.

    Raises:
        UsageError: There is no such file or folder, or no Python of it can be read.
    """
    files = with_own(find(path, lambda count: progress(f"{count} files found")))
    progress(f"reading {len(files.paths)} files")
    found, unread = judged(files.paths, lambda name: read(files.root, name))
    if not found:
        why = (*unread, *files.notes, f"{path} holds no Python")[0]
        raise UsageError(why, remedy="give a script, a notebook or a project's folder")
    places = obstacles(found)
    diagnosis = diagnose(
        found=move_matches(places, _folder(path)), causes=causes(), language=language
    )
    of_keras, old = _of_keras(files, language)
    closed = tuple(_unread(one) for one in unread)
    move = move_of(str(path), TARGET, (*old, *closed, *places))
    notes = (*files.notes, *unread)
    findings = (*of_keras, *diagnosis.findings)
    return Examined(
        diagnosis=replace(diagnosis, findings=findings, notes=notes, move=move),
        facts=MachineFacts(),
    )


def _folder(path: Path) -> str:
    """Return the folder that files are named from, as the user names it."""
    folder = path.parent if path.is_file() else path
    return "" if folder == Path() else folder.as_posix()


def _of_keras(
    files: SourceFiles, language: Language
) -> tuple[tuple[Finding, ...], tuple[Obstacle, ...]]:
    """Return what fails with Keras 3 on every backend, which comes before a move."""
    from tfdyno.rules.migration.check import check_code

    scripts = [one for one in files.paths if one.endswith((".py", ".pyw", ".ipynb"))]
    found, _ = check_code(scripts, lambda name: read(files.root, name), _OF_KERAS_2)
    told = diagnose(found=found, language=language).findings
    errors = tuple(one for one in told if one.severity == "error")
    old = [
        Obstacle(
            cause=one.cause, effect="stops", file=seen.source.partition(":")[0],
            source=seen.source, text=seen.text, name="", instead="", is_safe=False,
        )
        for one in errors for seen in one.evidence
    ]  # fmt: skip
    return errors, tuple(old)


def _unread(note: str) -> Obstacle:
    """Return a file, or a cell of a notebook, that could not be read."""
    file = note.partition(" was not read")[0]
    return Obstacle(
        cause="move.unread", effect="unknown", file=file.partition(",")[0], source=file,
        text=note, name="", instead="", is_safe=False,
    )  # fmt: skip


def with_own(files: SourceFiles) -> SourceFiles:
    """Add to a single script the files beside it that it imports, and those that they import."""
    if len(files.paths) != 1:
        return files
    found = list(files.paths)
    for name in found:
        found += [one for one in _imported(files.root, name) if one not in found]
    return replace(files, paths=tuple(found))


def _imported(root: Path, name: str) -> Iterator[str]:
    import ast

    from tfdyno.rules.migration.parse import syntax_tree

    folder = Path(name).parent
    try:
        tree = syntax_tree(read(root, name)) if name.endswith(".py") else ""
    except (OSError, ValueError, UsageError):
        return
    for node in ast.walk(tree) if isinstance(tree, ast.AST) else ():
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            modules = [base, *(f"{base}.{one.name}".lstrip(".") for one in node.names)]
        for module in filter(None, modules):
            inner = module.replace(".", "/")
            for one in (folder / f"{inner}.py", folder / inner / "__init__.py"):
                if (root / one).is_file():
                    yield one.as_posix()
