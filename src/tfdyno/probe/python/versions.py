"""What is installed for this interpreter or another, and in which version; nothing is imported."""

from __future__ import annotations

import functools
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec

from tfdyno.core.base.errors import UsageError

LOOK_S = 60.0
_ASK = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


def versions(*names: str, python: str = sys.executable) -> dict[str, str]:
    """Return the versions of those that are installed, by name, in the order that was asked.

    Args:
        names: Of distributions.
        python: The interpreter; one that cannot be asked has none, as what it runs tells better.
    """
    if python != sys.executable:
        return _of_another(python, names)
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def version(*names: str, python: str = sys.executable) -> str:
    """Return the version of the first of several that is installed; empty: none is."""
    return next(iter(versions(*names, python=python).values()), "")


def brings(python: str, module: str) -> bool:
    """Return whether an interpreter finds a module.

    Raises:
        UsageError: The interpreter cannot be run.
    """
    if python == sys.executable:
        return find_spec(module) is not None
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    asked = [python, "-c", code]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=LOOK_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"{python} cannot be run", why=str(error)) from None
    return done.returncode == 0


@functools.cache
def _of_another(python: str, names: tuple[str, ...]) -> dict[str, str]:
    try:
        done = subprocess.run(
            [python, "-c", _ASK, *names], capture_output=True, text=True, timeout=LOOK_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: found for name, _, found in lines if name in names}
