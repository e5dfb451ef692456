"""Make of a Horovod script one that tfdyno's trainer takes, or tell where Horovod can be kept."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.doctor.migration import Migration

OF_TENSORFLOW_1 = ("code.tf1_", "code.estimator")
"""Causes that the check of code names in a script of TensorFlow 1."""
KEPT = ".horovod.py"
"""Ends the name of the script as it was, where it is written over."""


def migrate(script: Path) -> Migration:
    """Return what becomes of a script; nothing is written.

    Args:
        script: A Python file that uses Horovod.

    Raises:
        UsageError: It cannot be read, is no Python, or does not use Horovod.
    """
    source = script_text(script)
    from tfdyno.rules.horovod.rewrite import migrated, uses_horovod

    try:
        if not uses_horovod(source):
            raise _not_of_horovod(script, source)
        found = migrated(str(script), source)
    except SyntaxError as error:
        what = f"{script} cannot be read: line {error.lineno}: {error.msg}"
        raise UsageError(what, remedy="give a file of Python 3") from None
    except RecursionError:
        raise UsageError(f"{script} cannot be read", why="it is nested too deeply") from None
    return replace(found, findings=() if found.hands else _of_keras(found), beside=_beside(script))


def written(found: Migration, path: Path, kept_as: str = KEPT) -> tuple[Path, ...]:
    """Write the new script, if it is whole.

    Args:
        found: What became of a script.
        path: Where to; over the script itself the old one is kept beside it.
        kept_as: What ends the name of the old one: ``NAME.horovod.py``.

    Returns:
        The files: the new script, and the old one where it was kept.

    Raises:
        UsageError: There are places for a person, another file is there, or it cannot be written.
    """
    script = Path(found.path)
    if found.hands:
        places = "1 place needs" if len(found.hands) == 1 else f"{len(found.hands)} places need"
        what = f"{path} is not written: {places} your hand first"
        raise UsageError(what, remedy="change them in the script, then migrate again")
    is_same = path.exists() and path.samefile(script)
    kept = script.with_name(f"{script.stem}{kept_as}") if is_same else None
    taken = kept if is_same else path
    if taken and taken.exists():
        raise UsageError(f"{taken} is there already", remedy="name another file, or move it away")
    with OSErrorsAs(UsageError, f"cannot write {path}"):
        mode = script.stat().st_mode & 0o777
        if kept:
            write_atomic(kept, script.read_bytes())
        write_atomic(path, found.after.encode())
        path.chmod(mode)
    return (path, kept) if kept else (path,)


def _not_of_horovod(script: Path, source: str) -> UsageError:
    """Say of a script without Horovod that there is nothing to leave, but it may be old."""
    from tfdyno.rules.migration.check import check_code

    what = f"{script} does not use Horovod"
    matches, _ = check_code([str(script)], lambda _path: source, {})
    if old := [one for one in matches if one.cause.startswith(OF_TENSORFLOW_1)]:
        why = f"it is code of TensorFlow 1, not of 2: {old[0].evidence[0].text}"
        return UsageError(what, why=why, remedy=f"every such line: tfdyno doctor --code {script}")
    return UsageError(what, remedy=f"run it as it is: tfdyno launch {script} --nodes 2")


def script_text(script: Path) -> str:
    """Read a script with its ends of lines; raises ``UsageError`` where it is none."""
    if script.suffix != ".py":
        what = f"{script} is no Python file"
        raise UsageError(what, remedy="give the script that trains: train.py")
    try:
        return script.read_bytes().decode()  # as it is: lines may end with a return too
    except FileNotFoundError:
        raise UsageError(f"there is no file {script}") from None
    except OSError as error:
        raise UsageError(f"cannot read {script}", why=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {script}", why="it is not UTF-8") from None


def _of_keras(found: Migration) -> tuple[Finding, ...]:
    """Return what else of the new script fails with the newest TensorFlow and Keras 3."""
    from tfdyno.rules.explain import diagnose
    from tfdyno.rules.migration.check import check_code

    matches, _ = check_code([found.path], lambda _path: found.after, {})
    errors = [one for one in diagnose(found=matches).findings if one.severity == "error"]
    return tuple(errors)


def _beside(script: Path) -> tuple[str, ...]:
    """Return files beside the script that it imports and that use Horovod too."""
    names: list[str] = []
    for node in ast.walk(ast.parse(script.read_bytes())):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    files = [script.parent / f"{name.replace('.', '/')}.py" for name in dict.fromkeys(names)]
    return tuple(str(one) for one in files if one.is_file() and _uses(one))


def _uses(path: Path) -> bool:
    from tfdyno.rules.horovod.rewrite import uses_horovod

    try:
        return uses_horovod(path.read_bytes().decode())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return False
