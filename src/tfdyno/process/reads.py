"""What the user's code reads besides its own modules: files, folders, environment variables."""

from __future__ import annotations

import _collections_abc
import contextlib
import os
import site
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

_LISTED = ("os.listdir", "os.scandir")
_COMPILED = (".pyc", ".so", ".pyd")
_OF_A_TERMINAL = frozenset("_ SHLVL PWD OLDPWD WINDOWID COLUMNS LINES".split())
"""What a copy of the whole environment has, and each terminal has another of."""
_OF_THE_MACHINE = ("/proc", "/sys", "/dev", "/etc", "/run")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
_ENVIRON = (os.__file__, _collections_abc.__file__, "<frozen os>", "<frozen _collections_abc>")
_SEARCHES = ("<frozen importlib", os.path.join("importlib", "metadata"))  # noqa: PTH118


@dataclass(slots=True)
class Reads:
    """What was read, by absolute path or by name; files that were written as well are left out."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    is_on: bool = True

    def paths(self) -> tuple[str, ...]:
        """Return files and folders in order, also those that were looked for and are not there."""
        return tuple(sorted((self.files | self.folders) - self.written))


@contextlib.contextmanager
def noted_reads() -> Iterator[Reads]:
    """Note what Python opens and lists, and which variables the user's code itself asks for.

    What C++ opens by itself is not seen. Modules of the user's count by their import; only who
    opens one as a file reads its text.
    """
    reads = Reads()

    def heard(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and reads.is_on:
            _opened(reads, *given)
        elif event in _LISTED and reads.is_on:
            _listed(reads, given[0])

    sys.addaudithook(heard)  # it stays as long as the process; ``is_on`` ends its work
    environ: Any = type(os.environ)
    plain = environ.__getitem__

    def asked(self: Mapping[str, str], name: str) -> str:
        is_asked = reads.is_on and isinstance(name, str) and name not in _OF_A_TERMINAL
        if is_asked and _is_asked_directly():
            reads.variables.add(name)
        value: str = plain(self, name)
        return value

    environ.__getitem__ = asked
    try:
        yield reads
    finally:
        reads.is_on = False
        environ.__getitem__ = plain


def _opened(reads: Reads, path: object, mode: object, flags: object) -> None:
    name = _absolute(path)
    if not name or name.endswith(_COMPILED):
        return
    if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        if not (isinstance(mode, str) and mode.startswith("a")):
            reads.written.add(name)
        return
    if _is_foreign(name):
        return
    asker, searches = _asker()
    if asker == "tfdyno" or searches or (name.endswith(".py") and asker != "user"):
        return
    reads.files.add(name)


def _listed(reads: Reads, path: object) -> None:
    name = _absolute(path if path is not None else ".")
    if not name or _is_foreign(name):
        return
    asker, searches = _asker()
    searched = {os.path.abspath(one or ".") for one in sys.path}  # noqa: PTH100
    if not searches and (asker == "user" or (asker == "other" and name not in searched)):
        reads.folders.add(name)


def _absolute(path: object) -> str:
    """Return a path as it is from the root; empty: a descriptor, whose opening was told."""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    return os.path.abspath(os.fsdecode(path))  # noqa: PTH100


def _is_asked_directly() -> bool:
    """Return whether the user's own code asks for a variable, not what it calls: ``argparse``."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in _ENVIRON:
        frame = frame.f_back
    return frame is not None and _owner(frame.f_code.co_filename) == "user"


def _asker() -> tuple[str, bool]:
    """Return whose code asked: ``user``, ``tfdyno``, ``other``; and if a search for modules did."""
    frame: FrameType | None = sys._getframe(2)
    searches = False
    while frame is not None:
        file = frame.f_code.co_filename
        searches = searches or any(one in file for one in _SEARCHES)
        owner = "stdlib" if file.startswith("<frozen") else _owner(file)
        if owner != "stdlib":
            return owner, searches
        frame = frame.f_back
    return "other", searches


@lru_cache(maxsize=4096)
def _owner(file: str) -> str:
    if file == __file__:
        return "stdlib"  # our own steps between the reader and what it reads
    name = os.path.realpath(file)
    if name.startswith(_PACKAGE + os.sep):
        return "tfdyno"
    if any(name.startswith(one + os.sep) for one in _packages()):
        return "other"
    if any(name.startswith(one + os.sep) for one in _standard()):
        return "stdlib"
    return "user" if os.path.isfile(name) else "other"  # noqa: PTH113


@lru_cache(maxsize=65536)
def _is_foreign(name: str) -> bool:
    """Return whether a path is the machine's, Python's, a package's or our own."""
    return name.startswith(_places()) or f"{os.path.realpath(name)}{os.sep}".startswith(_places())


@lru_cache(maxsize=1)
def _places() -> tuple[str, ...]:
    found = (*_OF_THE_MACHINE, *_packages(), *_standard(), sys.prefix, _PACKAGE)
    return tuple({f"{one}{os.sep}" for place in found for one in (place, os.path.realpath(place))})


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    return tuple({os.path.realpath(one) for one in (*found, site.getusersitepackages())})


@lru_cache(maxsize=1)
def _standard() -> tuple[str, ...]:
    return tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
