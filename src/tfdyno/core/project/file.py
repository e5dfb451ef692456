"""``project.toml`` as a project: names, references and order are checked, commands are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.project import Project, ProjectStep
from tfdyno.core.project.step_command import nearest
from tfdyno.core.project.step_order import ordered
from tfdyno.core.project.step_reference import OWN, named, own_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FILE = "project.toml"
_TOP = ("project", "steps")
_PROJECT = ("name", "store")
_STEP = ("command", "needs", "inputs", "allow-findings", "load")
"""Keys of a step that are no options of its command."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OPTION = re.compile(r"[^\s=-][^\s=]*")
_FINDERS = ("diagnose",)
"""Commands whose findings of severity error are their answer, not a failure of the step."""
SERVE = "serve"
MOST_NAME = 100
"""Signs of a step's name, of which the names of its folders are made."""
MOST_BYTES = 100_000
"""The most bytes of one text: Linux takes 131,071 for a word of a command line."""
MOST_STEP_BYTES = 500_000
"""The most bytes of all texts of a step."""
MOST_DEPTH = 8
"""The most tables and lists in one another."""
MOST_WHOLE = 2**63
"""The largest whole number, as TOML has them."""
_REMEDY = "put them into a file, and name that"


def project_from(raw: Mapping[str, Any], file: Path) -> Project:
    """Read what a project's file says.

    Args:
        raw: The file's tables.
        file: For messages, and as the place that relative paths start from.

    Raises:
        UsageError: A key is unknown, missing or of a wrong kind, a step is unknown or named
            twice in different ways, or steps need one another in a circle.
    """
    for key in raw:
        if key not in _TOP:
            raise UsageError(f"{file} has a key {key} that tfdyno does not know",
                             remedy=nearest(key, _TOP))  # fmt: skip
    head = _table(raw.get("project", {}), "[project]", file)
    check_limits(head, file, "[project]")
    for key in head:
        if key not in _PROJECT:
            raise UsageError(f"{file}: [project] has a key {key} that tfdyno does not know",
                             remedy=nearest(key, _PROJECT))  # fmt: skip
    tables = _table(raw.get("steps", {}), "[steps]", file)
    if not tables:
        raise UsageError(f"{file} has no steps", remedy="write a table [steps.NAME] for each")
    steps = {name: _step(name, _table(one, f"[steps.{name}]", file), file)
             for name, one in tables.items()}  # fmt: skip
    for step in steps.values():
        _check_needs(step, tuple(steps), file)
    order = ordered({name: step.needs for name, step in steps.items()})
    return Project(
        name=project_name(raw, file),
        file=file,
        is_named=bool(_text(head, "name", "[project]", file)),
        steps=tuple(steps[name] for name in order),
        store=_text(head, "store", "[project]", file),
    )


def project_name(raw: Mapping[str, Any], file: Path) -> str:
    """Return what a project is called: in its file, else as its folder; its runs are found by that.

    Of two files in one folder that give no name each has its own: ``nightly.toml`` in ``digits`` is
    ``digits-nightly``.

    Args:
        raw: The file's tables; nothing but the name has to be right.
        file: For messages, and where it lies.

    Raises:
        UsageError: It is no project at all, or its name is no text.
    """
    if not isinstance(raw.get("steps"), dict):
        raise UsageError(f"{file} is no project", why="it has no tables [steps.NAME]")
    head = _table(raw.get("project", {}), "[project]", file)
    folder = file.resolve().parent.name
    own = folder if file.name == FILE else f"{folder}-{file.stem}"
    return _text(head, "name", "[project]", file) or own


def _step(name: str, table: dict[str, Any], file: Path) -> ProjectStep:
    if len(name) > MOST_NAME:
        raise UsageError(f"{file}: a step cannot be called {name[:20]}…",
                         why=f"its name has {len(name)} signs", remedy=f"take at most {MOST_NAME}",
                         )  # fmt: skip
    where = f"[steps.{name}]"
    check_limits(table, file, where)
    if not _NAME.fullmatch(name) or name == OWN:
        why = "it means the step's own folder" if name == OWN else "it names a folder"
        raise UsageError(f"{file}: a step cannot be called {name!r}", why=why,
                         remedy="take letters, digits, - and _")  # fmt: skip
    command = " ".join(_text(table, "command", where, file).split())
    if not command:
        raise UsageError(f"{file}: {where} has no command", remedy='write command = "train"')
    load = _table(table.get("load", {}), f"[steps.{name}.load]", file)
    if load and command != SERVE:
        raise UsageError(f"{file}: {where} has a load", why="only a step that serves takes one")
    finds = command.split()[0] in _FINDERS
    for key in table:
        if key.replace("_", "-") == "allow-findings":
            finds = table[key]
    if not isinstance(finds, bool):
        raise UsageError(f"{file}: allow-findings of {where} is neither true nor false")
    options = {key: value for key, value in table.items() if key.replace("_", "-") not in _STEP}
    _check_names(options, where, file)
    _check_own(name, (options, load), file)
    asked = _texts(table, "needs", where, file)
    return ProjectStep(
        name=name,
        command=command,
        options=options,
        needs=tuple(dict.fromkeys((*asked, *named(options), *named(load)))),
        inputs=_texts(table, "inputs", where, file),
        load=load,
        allow_findings=finds,
    )


def _check_names(options: Mapping[str, Any], where: str, file: Path) -> None:
    for key in options:
        if not _OPTION.fullmatch(key):
            raise UsageError(f"{file}: {key!r} of {where} is no name of an option",
                             remedy="write it without dashes in front")  # fmt: skip


def _check_own(name: str, value: object, file: Path) -> None:
    if own := own_keys(value):
        raise UsageError(
            f"{file}: {{{OWN}.{own}}} of step {name} names nothing",
            why=f"{{{OWN}}} is the step's folder, and it has no answer before it has run",
            remedy=f"write {{{OWN}}}/{own} for a file",
        )


def _check_needs(step: ProjectStep, names: tuple[str, ...], file: Path) -> None:
    for one in step.needs:
        if one not in names:
            raise UsageError(
                f"{file}: step {step.name} names a step {one} that is not there",
                remedy=f"{nearest(one, names)} ({{{{ stands for a brace)",
            )


def _table(value: object, where: str, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{file}: {where} is no table", why=f"it is {value!r}",
                         remedy=f"write {where} on a line of its own")  # fmt: skip
    return value


def _text(table: Mapping[str, Any], key: str, where: str, file: Path) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"{file}: {key} of {where} is no text", why=f"it is {value!r}")
    return value.strip()


def _texts(table: Mapping[str, Any], key: str, where: str, file: Path) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise UsageError(f"{file}: {key} of {where} is no list of names",
                         remedy=f'write {key} = ["name"]')  # fmt: skip
    return tuple(value)


def check_limits(raw: Mapping[str, object], file: Path, where: str) -> None:
    """Refuse texts, numbers and depths that nothing could be done with.

    Args:
        raw: A table of the file.
        file: For the sentence.
        where: What the table is called there.

    Raises:
        UsageError: The sentence names the table, not the value.
    """
    size_bytes = 0
    for value, depth in _values(raw):
        if depth > MOST_DEPTH:
            raise UsageError(f"{file}: {where} is nested too deep")
        if isinstance(value, int) and abs(value) >= MOST_WHOLE:
            raise UsageError(f"{file}: a number of {where} is too large", why="it has over 64 bits")
        if isinstance(value, str):
            size_bytes += _checked_bytes(value, file, where)
    if size_bytes > MOST_STEP_BYTES:
        raise UsageError(f"{file}: the texts of {where} are too long", remedy=_REMEDY,
                         why=f"they have {size_bytes:,} bytes")  # fmt: skip


def _checked_bytes(text: str, file: Path, where: str) -> int:
    size_bytes = len(text.encode(errors="replace"))
    if size_bytes > MOST_BYTES:
        raise UsageError(f"{file}: a text of {where} is too long", remedy=_REMEDY,
                         why=f"it has {size_bytes:,} bytes")  # fmt: skip
    if "\0" in text:
        before = text.partition("\0")[0][-20:]
        raise UsageError(f"{file}: a text of {where} has a NUL in it",
                         why=f"behind {before!r}" if before else "at its begin")  # fmt: skip
    return size_bytes


def _values(raw: Mapping[str, object]) -> Iterator[tuple[object, int]]:
    """Walk all keys and values, each with its depth, none below the depth that is refused."""
    left: list[tuple[object, int]] = [(raw, 0)]
    while left:
        value, depth = left.pop()
        yield value, depth
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        if isinstance(inner, list):
            left += [(one, depth + 1) for one in inner]
