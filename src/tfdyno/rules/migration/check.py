"""The migration check: files of a project in, findings with line and replacement out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.rules.condition import version_key
from tfdyno.rules.migration import (
    backend,
    loops,
    names,
    order,
    precision,
    requirements,
    saving,
    strategy,
)
from tfdyno.rules.migration.hits import Hit, matches
from tfdyno.rules.migration.parse import Parsed, notebook, python
from tfdyno.rules.migration.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfdyno.rules.match import Match
    from tfdyno.rules.migration.sites import Module

RULES = (
    names.find, order.find, strategy.find, backend.find, precision.find, saving.find, loops.find,
)  # fmt: skip
_WORDS = ("tensorflow", "keras", "horovod", "tf_slim")
_KERAS_3_SINCE = (2, 16)
_LEGACY = "2.16"
"""Version of ``tf_keras`` that stands for Keras 2 where no TensorFlow is known."""
BACKEND_CAUSES = ("keras_distribution", "remat_scope")


def check_code(
    paths: Iterable[str], read: Callable[[str], str], facts_values: Mapping[str, str]
) -> tuple[tuple[Match, ...], tuple[str, ...]]:
    """Look through files for what does not fit the TensorFlow and Keras at hand.

    Args:
        paths: Files as the user shall see them: Python, notebooks, requirements, Dockerfiles.
        read: Gives the text of one; may raise ``OSError``, ``ValueError`` or ``TfdynoError``.
        facts_values: What is known: ``tensorflow``, ``keras``, ``keras_backend``; a missing one
            counts as the newest release and makes a finding likely instead of proven.

    Returns:
        One match per cause with its lines as evidence, and what could not be read, in words.
    """
    values = with_keras(facts_values)
    hits: list[Hit] = []
    notes: list[str] = []
    named: set[str] = set()
    paths = tuple(paths)
    project = Project(paths, read)
    for path in paths:
        try:
            text = read(path)
        except TfdynoError as error:
            notes.append(str(error))
            continue
        except (OSError, ValueError) as error:
            notes.append(f"{path} was not read: {getattr(error, 'strerror', '') or error}.")
            continue
        found, unread = _file(path, text, values, project)
        named |= _backends(text)
        hits += found
        notes += unread
    return matches(_for_backend(hits, named)), tuple(notes)


def with_keras(values: Mapping[str, str]) -> dict[str, str]:
    """Add the Keras that the TensorFlow release brings, where Keras is not known."""
    known = dict(values)
    tensorflow = known.get("tensorflow", "")
    if tensorflow and not known.get("keras"):
        known["keras"] = tensorflow if version_key(tensorflow) < _KERAS_3_SINCE else "3"
    return known


def legacy_values(values: Mapping[str, str]) -> dict[str, str] | None:
    """Return the values for ``tf.keras`` under TF_USE_LEGACY_KERAS; None: it is ignored."""
    tensorflow = values.get("tensorflow", "")
    if tensorflow and version_key(tensorflow) < _KERAS_3_SINCE:
        return None
    return {**values, "keras": tensorflow or _LEGACY}


def _backends(text: str) -> set[str]:
    """Name Keras backends that any file of the project names, be it a script or a Dockerfile."""
    if "KERAS_BACKEND" not in text:
        return set()
    lines = [line for line in text.splitlines() if "KERAS_BACKEND" in line]
    return {name for name in ("jax", "torch", "tensorflow") for line in lines if name in line}


def _for_backend(hits: list[Hit], named: set[str]) -> list[Hit]:
    """Return the hits without those about a backend that another file of the project rules out."""
    if not named or "tensorflow" in named:
        return hits
    return [hit for hit in hits if hit.cause not in BACKEND_CAUSES or hit.verdict == "proven"]


def _file(
    label: str, text: str, values: Mapping[str, str], project: Project
) -> tuple[list[Hit], list[str]]:
    """Return one file's finds and why it, or a part of it, was not read."""
    suffix = PurePath(label).suffix.lower()
    if "\0" in text[:4096]:
        return [], [f"{label} was not read: it is not text."]
    if requirements.is_requirements(label):
        return requirements.find(label, text)
    if suffix not in (".py", ".pyw", ".ipynb"):
        return [], []
    if not any(word in text for word in _WORDS) and not project.imports_own(label, text):
        return [], []
    parsed = (notebook if suffix == ".ipynb" else python)(label, text, values, project.of(label))
    return [*parsed.hits, *_hits(label, text, parsed, values)], list(parsed.notes)


def _hits(label: str, text: str, parsed: Parsed, values: Mapping[str, str]) -> list[Hit]:
    hits: list[Hit] = []
    for source, command in parsed.commands:
        hits += requirements.shell(label, command, source=source)
    if parsed.tree and PurePath(label).name == "setup.py":
        hits += requirements.in_python(label, text, parsed.tree)
    if parsed.module:
        module = _switched(parsed.module, values)
        for rule in RULES:
            hits += rule(module)
    return hits


def _switched(module: Module, values: Mapping[str, str]) -> Module:
    """Add what is known of a file's Keras, where the machine or it itself asks for Keras 2."""
    is_asked = values.get("legacy_keras") in order.TRUE or order.asks_in_time(module)
    legacy = legacy_values(values) if is_asked else None
    own = legacy if legacy and not module.imports("keras") else values
    return replace(module, values=own, legacy=legacy)
