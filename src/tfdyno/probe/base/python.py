"""The interpreter: its version, its environment and the folders of its packages."""

from __future__ import annotations

import functools
import os
import re
import sys
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.probe.base.attempt import Part, failed, found

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.probe.base.host import Host

Manager = Literal["", "pip", "uv", "conda", "poetry", "pixi", "system"]
ASK_LIMIT_S = 5.0
PATH_VARIABLE = "PYTHONPATH"
QUESTION = f"""
import json, os, struct, sys
from importlib.util import find_spec
sys.path[:0] = filter(None, os.environ.get({PATH_VARIABLE!r}, "").split(os.pathsep))
spec = find_spec("tensorflow")
print(json.dumps([".".join(map(str, sys.version_info[:3])), 8 * struct.calcsize("P"), sys.prefix,
                  sys.path, spec.origin if spec else None]))
"""
"""Isolated from the folder where it is asked; what the user adds to the path counts."""
PACKAGE_FOLDERS = ("site-packages", "dist-packages")
MODULE_FILE = "__init__.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """What an interpreter says of itself, or its folders tell."""

    version: str = ""
    bits: int = 64
    prefix: str = ""
    folders: tuple[str, ...] = ()
    """``site-packages`` and what ``PYTHONPATH`` names, in the order of import."""
    tensorflow: str = ""
    """Folder of the module ``tensorflow`` that an import would find; empty: none, or not asked."""


def python(host: Host, facts: MachineFacts) -> Part:
    """Return which interpreter it is and what manages its environment."""
    one = interpreter(host)
    known = replace(
        facts.python,
        version=one.version,
        bits=one.bits,
        prefix=one.prefix,
        manager=manager(host, one),
    )
    if not one.folders:
        return failed(f"no site-packages were found for {host.python or 'python'}", python=known)
    return found(python=known)


def interpreter(host: Host) -> Interpreter:
    """Return facts of ``host.python``: of this process, by asking once, or by its folders."""
    if not host.is_whole:
        return by_layout(host)
    if _is_this(host.python):
        bits = 64 if sys.maxsize > 1 << 32 else 32
        version = ".".join(map(str, sys.version_info[:3]))
        module = _module_folder(_origin_here())
        folders = _package_folders(sys.path, module)
        return Interpreter(version=version, bits=bits, prefix=sys.prefix, folders=folders,
                           tensorflow=module)  # fmt: skip
    return by_asking(host.python) or by_layout(host)


@functools.cache
def by_asking(path: str) -> Interpreter | None:
    """Return its answer, or None where it cannot be started; started once, as many probes ask."""
    import json
    import subprocess

    try:
        done = subprocess.run(
            [path, "-I", "-c", QUESTION], capture_output=True, timeout=ASK_LIMIT_S, check=True
        )
        version, bits, prefix, folders, origin = json.loads(done.stdout)
        module = _module_folder(origin)
        return Interpreter(
            version=version,
            bits=bits,
            prefix=prefix,
            folders=_package_folders(folders, module),
            tensorflow=module,
        )
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return None


def by_layout(host: Host) -> Interpreter:
    """Find prefix, version and packages from where the interpreter lies."""
    if host.system == "windows":
        prefix = str(PureWindowsPath(host.python).parent)
        prefix = prefix.removesuffix("\\Scripts")
        folders = [f"{prefix}\\Lib\\site-packages"]
    else:
        prefix = str(PurePosixPath(host.python).parent.parent)
        libraries = [f"{prefix}/lib/{one}" for one in host.names(f"{prefix}/lib")]
        folders = [f"{one}/{name}" for one in libraries for name in PACKAGE_FOLDERS]
        folders += [f"{prefix}/lib/python3/dist-packages"]
        if prefix == "/usr":
            local = [f"/usr/local/lib/{one}" for one in host.names("/usr/local/lib")]
            folders = [f"{one}/dist-packages" for one in local] + folders
    folders = [one for one in dict.fromkeys(folders) if host.exists(one)]
    return Interpreter(
        version=_version_by_layout(host, prefix, folders), prefix=prefix, folders=tuple(folders)
    )


def manager(host: Host, one: Interpreter) -> Manager:
    """Return what manages the environment: it decides which commands mend it."""
    separator = "\\" if host.system == "windows" else "/"
    configuration = host.text(f"{one.prefix}{separator}pyvenv.cfg")
    if f"{separator}.pixi{separator}" in one.prefix:
        return "pixi"
    if host.exists(f"{one.prefix}{separator}conda-meta"):
        return "conda"
    if "pypoetry" in one.prefix or "POETRY_ACTIVE" in host.environment:
        return "poetry"
    if re.search(r"^uv\s*=", configuration, re.MULTILINE):
        return "uv"
    version = ".".join(one.version.split(".")[:2])
    if not configuration and host.exists(f"{one.prefix}/lib/python{version}/EXTERNALLY-MANAGED"):
        return "system"
    return "pip" if one.folders else ""


def _is_this(path: str) -> bool:
    """Return whether it is this process's interpreter; links of environments stay as they are."""
    return not path or os.path.abspath(path) == os.path.abspath(sys.executable)  # noqa: PTH100


def _package_folders(folders: list[str], module: str) -> tuple[str, ...]:
    """List where packages lie: by name, by the user's own word, or since TensorFlow does."""
    ends = tuple(PACKAGE_FOLDERS)
    own = {os.path.abspath(one)  # noqa: PTH100
           for one in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if one}  # fmt: skip
    own |= {os.path.dirname(module)} if module else set()  # noqa: PTH120
    found = [one for one in folders if one.endswith(ends) or os.path.abspath(one) in own]  # noqa: PTH100
    return tuple(dict.fromkeys(found))


def _origin_here() -> str | None:
    """Return where an import would find TensorFlow in this process, which does not import it."""
    from importlib.util import find_spec

    try:
        spec = find_spec("tensorflow")
    except (ImportError, ValueError):  # a stand-in of a test; a finder that gives up
        return None
    return spec.origin if spec else None


def _module_folder(origin: str | None) -> str:
    """Return a package's folder; empty for a file or a folder of the user's with its name."""
    folder, name = os.path.split(origin or "")
    is_whole = name == MODULE_FILE and os.path.isdir(os.path.join(folder, "python"))  # noqa: PTH112, PTH118
    return folder if is_whole else ""


def _version_by_layout(host: Host, prefix: str, folders: list[str]) -> str:
    """Read it from ``pyvenv.cfg``, the packages of conda, or the name of a folder."""
    separator = "\\" if host.system == "windows" else "/"
    configuration = host.text(f"{prefix}{separator}pyvenv.cfg")
    line = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+\.\d+)", configuration, re.MULTILINE)
    if line:
        return line[1]
    for name in host.names(f"{prefix}{separator}conda-meta"):
        package = re.match(r"python-(\d+\.\d+\.\d+)-", name)
        if package:
            return package[1]
    found_in = re.search(r"python(\d\.\d+)", " ".join(folders))
    return found_in[1] if found_in else ""
