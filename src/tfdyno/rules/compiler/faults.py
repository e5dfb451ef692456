"""Which fault of XLA a text tells of: the known ones as data, and any other inside the compiler."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdyno.core.base.errors import ToolError
from tfdyno.core.recipe.retreat import STEPS, RetreatStep

DATA = Path(__file__).parent / "data"
MOST_SAID = 160
UNKNOWN, NEVER = "unknown", "never"
_UP_TO = re.compile(r" for HLO:? | for \(d0|, domain: | HLO: %|: hlo \{")
"""Where what the compiler says turns into its program."""
_RAISED = re.compile(r"^(?:.*?\b\w*Error: )?(?:[A-Z_]+: +)?")
"""What stands before: who failed, the type, the status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault inside XLA that somebody has met."""

    id: str
    title: str = ""
    match: tuple[str, ...] = ()
    """Regular expressions: one is found in what the compiler says; none: it says nothing."""
    first_step: RetreatStep = STEPS[0]
    """The first step of the retreat that can help."""
    remedy: str = ""
    silent: bool = False
    """Whether it gives wrong numbers in place of an error."""
    slow: bool = False
    """Whether the compile ends well, after long."""
    stops: bool = False
    """Whether XLA compiles nothing there, whatever the model."""
    check: str = ""
    """Flag of XLA with which it tells of a silent one."""
    tensorflow: tuple[str, ...] = ()
    """Releases that have it: ``2.21`` is all of 2.21; empty: none is known to."""
    jaxlib: tuple[str, ...] = ()
    cudnn: tuple[str, ...] = ()
    """First and last release of cuDNN that has it; empty: it does not hang on that."""
    capabilities: tuple[str, ...] = ()
    """Compute capabilities that have it; empty: all."""
    pattern: str = ""
    """The pattern of the model: ``convolution``, ``convolution_flatten_dense``, ``product``,
    ``any``; empty: it is not warned of."""
    references: tuple[str, ...] = ()
    source: str

    @property
    def is_known(self) -> bool:
        """Whether somebody has described it, and not only met something of its kind."""
        return self.id != UNKNOWN

    def tells(self, text: str) -> bool:
        """Return whether a text tells of it."""
        return any(re.search(pattern, text) for pattern in self.match)


@functools.cache
def _table() -> dict[str, Fault]:
    path = DATA / "faults.toml"
    try:
        raw: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
        found = {name: _fault(name, row) for name, row in raw.items()}
    except (OSError, ValueError, TypeError) as error:
        raise ToolError(f"{path.name} is corrupt", why=str(error)) from None
    if missing := {UNKNOWN, NEVER} - set(found):
        raise ToolError(f"{path.name} is corrupt", why=f"{missing.pop()} is missing")
    return found


def _fault(name: str, row: dict[str, Any]) -> Fault:
    fields: dict[str, Any] = {"id": name}
    fields |= {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return Fault(**fields)


def all_faults() -> tuple[Fault, ...]:
    """Return the known faults."""
    return tuple(one for one in _table().values() if one.id not in (UNKNOWN, NEVER))


def fault_in(text: str, *, crashed_in_xla: bool = False) -> Fault | None:
    """Find the fault inside the compiler that a failure tells of; None: another kind of failure.

    What the user's code causes (operations without an XLA version, sizes that depend on values),
    a lack of memory and an installation without libdevice or ptxas are no faults of the compiler.

    Args:
        text: Type and text of the exception, or the last lines of a process that crashed.
        crashed_in_xla: Whether the process was killed by a signal of its own while XLA compiled.
    """
    table = _table()
    if table[NEVER].tells(text):
        return None
    known = next((one for one in all_faults() if one.tells(text)), None)
    if known or crashed_in_xla or table[UNKNOWN].tells(text):
        return known or table[UNKNOWN]
    return None


def short(text: str) -> str:
    """Return what the compiler said, in one line without its program; empty: nothing that tells."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = next((line for line in lines if fault_in(line)), "")
    said = _UP_TO.split(_RAISED.sub("", line))[0].strip()
    said = said + ")" * (said.count("(") - said.count(")"))
    return said if len(said) <= MOST_SAID else f"{said[: MOST_SAID - 1]}…"
