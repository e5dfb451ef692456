"""The causes as data: what each is called, how a log shows it, and what mends it."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import field
from typing import TYPE_CHECKING, Any, get_args

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import ToolError
from tfdyno.core.doctor.finding import Severity, Verdict
from tfdyno.rules.tables import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = re.compile(r"^\[\w", re.MULTILINE)
"""Where the table of a cause begins; its rules and steps have two brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A text in every language; ``{name}`` is filled from the values of a match.

    A text may hold variants, separated by ``||``: the first whose names are all known is used.
    """

    en: str
    zh: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseStep:
    """A step of a fix, shown where ``when`` holds."""

    text: Words | None = None
    command: str = ""
    when: dict[str, str] = field(default_factory=dict)
    """Value name to condition, as ``condition.holds`` reads it; all must hold."""
    choice: str = ""
    """Of the steps that share a choice only the first that applies is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRule:
    """A line of a log that speaks for a cause."""

    needle: str
    """Lower-case text that the line holds: found fast in large logs."""
    match: str = ""
    """Regular expression that the line must also match, ignoring case; names values to keep."""
    verdict: Verdict = "likely"
    also: tuple[str, ...] = ()
    """Lower-case texts of which one must stand anywhere in the log."""
    unless: tuple[str, ...] = ()
    """Lower-case texts of which none may stand anywhere in the log."""
    when: dict[str, str] = field(default_factory=dict)
    """Conditions on the values of the machine, as in ``CauseStep``."""
    alone: bool = False
    """A topic, for a person's few sentences: counts only where no other rule speaks."""
    example: str
    """A line that this rule finds; a test checks it."""
    near_miss: str
    """A line much like it that this rule must leave alone; a test checks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause of the taxonomy."""

    severity: Severity
    title: Words
    """The summary sentence."""
    why: Words
    fix: tuple[CauseStep, ...]
    log: tuple[LogRule, ...] = ()
    harmless: bool = False
    explains: tuple[str, ...] = ()
    """Causes that are only symptoms when this one is there; ``lib.*`` means a whole group."""
    rank: int = 50
    """Among findings of one verdict the smaller rank comes first: 10 a root, 90 a mere symptom."""
    link: str = ""
    source: str
    """Where the knowledge comes from."""
    id: str = ""
    """Set by the reader from the name of the table."""


def groups() -> tuple[str, ...]:
    """Return names of the groups, each a file of its own."""
    return tuple(sorted(path.stem for path in DATA.glob("*.toml")))


@functools.cache
def group(name: str) -> tuple[Cause, ...]:
    """Read one group's causes; only its own file is read, for reading all of them takes long.

    Raises:
        ToolError: The shipped file is corrupt; names the file and the cause.
    """
    return read_group(name, _text(name))


def _text(name: str) -> str:
    path = DATA / f"{name}.toml"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"cannot read {path.name}", why=error.strerror or str(error)) from None


def read_group(name: str, text: str) -> tuple[Cause, ...]:
    """Read a file's text as causes; raises ``ToolError`` for an unknown key or a bad rule."""
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ToolError(f"{name}.toml is not valid TOML", why=str(error)) from None
    found = []
    for key, table in tables.items():
        where = f"{name}.toml, cause '{key}'"
        try:
            one = _cause(table, f"{name}.{key}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ToolError(f"{where} is wrong", why=str(error)) from None
        fault = next(_faults(one), "")
        if fault:
            raise ToolError(f"{where} is wrong", why=fault)
        found.append(one)
    return tuple(found)


def _cause(table: dict[str, Any], identifier: str) -> Cause:
    """Read a table as a cause; by hand, for the codec takes a tenth of what a start may cost."""
    rest = dict(table)
    steps = [dict(one) for one in rest.pop("fix", ())]
    rules = [dict(one) for one in rest.pop("log", ())]
    return Cause(
        title=Words(**rest.pop("title")),
        why=Words(**rest.pop("why")),
        fix=tuple(CauseStep(text=_words(one.pop("text", None)), **one) for one in steps),
        log=tuple(
            LogRule(also=tuple(one.pop("also", ())), unless=tuple(one.pop("unless", ())), **one)
            for one in rules
        ),
        explains=tuple(rest.pop("explains", ())),
        id=identifier,
        **rest,
    )


def _words(table: dict[str, str] | None) -> Words | None:
    return Words(**table) if table else None


@functools.cache
def cause(identifier: str) -> Cause:
    """Return the cause of an id such as ``drv.too_old``; only its own table is read.

    A machine has a few findings of several groups, and to read whole files for them takes a tenth
    of what a light command may.

    Raises:
        ToolError: There is none.
    """
    name, _, key = identifier.partition(".")
    text = _text(name) if name in groups() else ""
    head = re.search(rf"^\[{re.escape(key)}\]", text, re.MULTILINE)
    if not head:
        raise ToolError(f"no cause '{identifier}' in the rules")
    after = _HEAD.search(text, head.end())
    return read_group(name, text[head.start() : after.start() if after else len(text)])[0]


def _faults(one: Cause) -> Iterator[str]:
    if one.severity not in get_args(Severity):
        yield f"the severity '{one.severity}' is not known"
    if not one.fix:
        yield "it has no fix"
    for step in one.fix:
        if step.text is None and not step.command:
            yield "a step of its fix has neither text nor command"
    for rule in one.log:
        if rule.verdict not in get_args(Verdict):
            yield f"the verdict '{rule.verdict}' is not known"
        for text in (rule.needle, *rule.also, *rule.unless):
            if not text or text != text.lower():
                yield f"the needle '{text}' is empty or not in lower case"


def all_causes() -> tuple[Cause, ...]:
    """Return every cause of every group."""
    return tuple(one for name in groups() for one in group(name))
