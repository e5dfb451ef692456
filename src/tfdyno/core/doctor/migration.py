"""A script that trains with another library, as tfdyno's trainer takes it."""

from __future__ import annotations

from dataclasses import dataclass

from tfdyno.core.doctor.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is written otherwise."""

    line: int
    """The line of the script as it was, from 1."""
    name: str
    """What stood there, in short: ``hvd.size()``."""
    why: str
    """One sentence: what is there instead, or who does it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """A place that cannot be told for sure, and is left to a person."""

    line: int
    text: str
    """The line of code."""
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What becomes of a script."""

    path: str
    before: str
    after: str
    """The text with all changes; where ``hands`` is not empty it is not whole."""
    changes: tuple[Change, ...]
    """The changes in the order of the lines."""
    hands: tuple[Hand, ...]
    """What needs a person, in the order of the lines; empty: ``after`` can be launched."""
    diff: str = ""
    """Unified, of ``before`` and ``after``."""
    findings: tuple[Finding, ...] = ()
    """What else of ``after`` fails with Keras 3, by the doctor's rules."""
    beside: tuple[str, ...] = ()
    """Files that the script imports and that use the library too."""

    @property
    def is_done(self) -> bool:
        """Whether ``after`` trains as it is: nothing is left to a person."""
        return not (self.hands or self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What was seen of a library with one TensorFlow."""

    tensorflow: str
    """Release, or a condition: ``>=2.16``."""
    keras: str
    builds: str
    trains: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    """One command of a way to keep a library, and what is known of it."""

    text: str
    command: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How to go on with the library where it runs."""

    support: tuple[Support, ...]
    install: tuple[MigrationStep, ...]
    start: tuple[MigrationStep, ...]
