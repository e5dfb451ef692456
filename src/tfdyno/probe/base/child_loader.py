"""Load shared libraries one after the other and tell which file each came from.

Started as a script in the user's interpreter, which may be old: standard library and
Python 3.6 only. A library may crash the process, so every answer is printed at once.
"""

# Loading pathlib would take longer than this script; what ctypes returns has no type.
# ruff: noqa: PTH110, PTH112, PTH118, PTH119, PTH123, ANN401
import ctypes
import json
import os
import sys
from typing import Any

MARK = "tfdyno:"
VERSION_CALLS = {"nccl": "ncclGetVersion", "cudart": "cudaRuntimeGetVersion"}


def tell(**answer: Any) -> None:
    """Print one answer."""
    sys.stdout.write(MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(request: Any) -> None:
    """Load ``request["libraries"]`` (library, soname), looking in ``request["folders"]`` first."""
    if hasattr(os, "add_dll_directory"):
        for folder in request["folders"]:
            if os.path.isdir(folder):
                os.add_dll_directory(folder)
    for library, soname in request["libraries"]:
        path, error, version = _load(library, soname, request["folders"])
        tell(kind="library", name=soname, path=path, error=error, version=version)


def _load(library: str, soname: str, folders: Any) -> Any:
    """Return path, error and version of one library; the version is 0 where it cannot be asked."""
    files = [os.path.join(folder, soname) for folder in folders]
    first = next((one for one in files if os.path.exists(one)), soname)
    try:
        loaded = ctypes.CDLL(first)
    except OSError as error:
        return "", str(error), 0
    try:
        version = _version(library, loaded)
    except (AttributeError, OSError):
        version = 0
    return _file_of(soname, first), "", version


def _version(library: str, loaded: Any) -> int:
    if library == "cudnn":
        loaded.cudnnGetVersion.restype = ctypes.c_size_t
        return int(loaded.cudnnGetVersion())
    number = ctypes.c_int(0)
    if library in VERSION_CALLS:
        getattr(loaded, VERSION_CALLS[library])(ctypes.byref(number))
    return number.value


def _file_of(soname: str, fallback: str) -> str:
    """Return the mapped file, links resolved; what was asked for where the system hides it."""
    stem = soname.partition(".so")[0] + ".so"
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                path = line.split(None, 5)[5:]
                if path and os.path.basename(path[0].strip()).startswith(stem):
                    return path[0].strip()
    except OSError:
        pass
    return fallback


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
