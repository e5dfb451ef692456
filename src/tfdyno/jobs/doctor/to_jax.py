"""Make of a script of TensorFlow's backend one that Keras trains on JAX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.launch.migrate import script_text

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.doctor.migration import Migration
    from tfdyno.rules.jax.project import Judged

KEPT = ".tensorflow.py"
"""Ends the name of the script as it was, where it is written over."""


def migrate_to_jax(script: Path) -> Migration:
    """Return what becomes of a script; nothing is written.

    Args:
        script: A Python file that trains with Keras on TensorFlow.

    Raises:
        UsageError: It cannot be read, is no Python, or nothing of it is to be changed.
    """
    source = script_text(script)
    from tfdyno.jobs.doctor.move import with_own
    from tfdyno.probe.files.source_files import find, read
    from tfdyno.rules.jax.project import judged
    from tfdyno.rules.jax.rewrite import moved
    from tfdyno.rules.migration.parse import syntax_tree

    tree = syntax_tree(source)
    if isinstance(tree, SyntaxError):
        what = f"{script} cannot be read: line {tree.lineno}: {tree.msg}"
        raise UsageError(what, remedy="give a file of Python 3")
    if isinstance(tree, str):
        raise UsageError(f"{script} cannot be read", why=tree)
    files = with_own(find(script))
    name = files.paths[0]
    found, _ = judged(
        files.paths, lambda one: source if one == name else read(files.root, one)
    )  # fmt: skip
    own = next(one for one in found if one.label == name)
    if not _is_of_keras(own):
        what = f"{script} imports neither TensorFlow nor Keras"
        raise UsageError(what, remedy="give the script that makes and trains the model")
    result = moved(own, str(script))
    beside = tuple(
        str(files.root / one.label) for one in found if one is not own and _needs_change(one)
    )
    return replace(result, findings=_left(own, script, source), beside=beside)


def _is_of_keras(one: Judged) -> bool:
    return any(site.imports("tf", "keras", "keras_hub") for site in one.file.script.sites)


def _needs_change(one: Judged) -> bool:
    from tfdyno.rules.jax.project import effect_of

    return any(effect_of(found.cause) == "stops" for found in one.finds)


def _left(one: Judged, script: Path, source: str) -> tuple[Finding, ...]:
    """Return what cannot be told of the script, and what of it fails with Keras 3 anywhere."""
    from tfdyno.rules.explain import diagnose
    from tfdyno.rules.jax.project import causes, move_matches, obstacles
    from tfdyno.rules.migration.check import check_code

    unknown = [each for each in obstacles([one]) if each.effect == "unknown"]
    told = diagnose(found=move_matches(unknown), causes=causes()).findings if unknown else ()
    of_keras = {"keras_backend": "jax", "keras": "3"}
    found, _ = check_code([str(script)], lambda _path: source, of_keras)
    errors = [each for each in diagnose(found=found).findings if each.severity == "error"]
    return (*errors, *told)
