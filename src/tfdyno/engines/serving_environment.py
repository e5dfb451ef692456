"""The environment that models are served in: made from hashed requirements, whole or not at all.

NVIDIA's PyTriton needs numpy below 2 and tfdyno needs numpy 2, so a server cannot run beside it:
docs/decisions/0024.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.engines.process.local import Limits, attend, together
from tfdyno.engines.process.process import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.engines.process.process import Process

DATA = Path(__file__).parent / "data"
REQUIREMENTS = {False: DATA / "serving.txt", True: DATA / "serving-gpu.txt"}
"""The requirements by whether the server uses a GPU; ``scripts/lock`` writes them."""
STAMP = "tfdyno-serving.json"
PYTHONS = ("3.11", "3.12")
"""Those that numpy below 2 has wheels for, and tfdyno runs in."""
REMEDY = "make it once with tfdyno serve --setup, or add --yes"
SIZE_BYTES = 1_800_000_000
"""The size on disk without CUDA libraries: as ``serving.txt`` was installed with Python 3.11."""
LONGEST_S = 3600.0
_LOOKING, _DOWNLOADING = "looking for", "downloading"
CHECKED = """
import ctypes, os, sys, sysconfig
if sys.platform != "linux" or os.uname().machine != "x86_64":
    print("Triton's wheel is built for Linux on x86_64 only"); sys.exit(9)
name = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
try:
    ctypes.CDLL(name)
except OSError:
    try:
        ctypes.CDLL(os.path.join(sysconfig.get_config_var("LIBDIR") or "", name))
    except OSError:
        print(f"it has no shared library {name}"); sys.exit(9)
print("%d.%d" % sys.version_info[:2])
"""
"""What an interpreter says of itself: Triton loads the library of the same version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEnvironment:
    """An environment that is there."""

    folder: Path
    size_bytes: int
    is_new: bool
    """Whether it was made just now."""
    gpu: bool


def python_of(folder: Path) -> Path:
    """Return the interpreter of the serving environment in a folder.

    Raises:
        UsageError: There is no such environment, or another version of tfdyno made it.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        raise UsageError(f"there is no serving environment in {folder}", remedy=REMEDY)
    stamp = _stamp_of(folder)
    if stamp and stamp["requirements"] != _digest(gpu=stamp["gpu"]):
        what = f"the serving environment in {folder} was made by another version of tfdyno"
        remedy = "bring it up to date with tfdyno serve --setup, or add --yes"
        raise UsageError(what, remedy=remedy)
    return python


def is_for_gpu(folder: Path) -> bool | None:
    """Return whether the environment there has CUDA libraries; None: tfdyno made none there."""
    stamp = _stamp_of(folder)
    return bool(stamp["gpu"]) if stamp else None


def make(
    folder: Path, *, python: str, gpu: bool, progress: Callable[[str], None]
) -> ServingEnvironment:
    """Make the environment, or find that nothing has changed.

    It is made beside the folder and takes its place when it is whole, so that a server that runs
    in the old one is not disturbed and Ctrl-C leaves nothing.

    Args:
        folder: Where; its parent is made if need be.
        python: The interpreter it is made from; empty: a fitting one.
        gpu: With the CUDA libraries of TensorFlow.
        progress: Called with every stage.

    Raises:
        UsageError: No fitting interpreter, or the folder holds something else.
        ToolError: A package cannot be had, or the disk is full.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  (a link stays as it was named)
    _check_ours(folder)
    interpreter = fitting_python(python)
    stamp = {"requirements": _digest(gpu=gpu), "gpu": gpu}
    with OSErrorsAs(UsageError, f"cannot make {folder}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with _held(folder.parent, f".{folder.name}.lock"):
        if _stamp_of(folder) == stamp and (folder / "bin" / "python").exists():
            return ServingEnvironment(
                folder=folder, size_bytes=_size_bytes(folder), is_new=False, gpu=gpu
            )
        beside = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(beside, ignore_errors=True)  # of a run that was killed
        try:
            _fill(beside, interpreter, gpu, progress)
            _move_paths(beside, folder)
            (beside / STAMP).write_text(json.dumps(stamp))
            _swap(beside, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return ServingEnvironment(folder=folder, size_bytes=_size_bytes(folder), is_new=True, gpu=gpu)


def fitting_python(named: str) -> str:
    """Return an interpreter that a serving environment can be made from; raises ``UsageError``."""
    versions = " or ".join(PYTHONS)
    candidates = [named] if named else [sys.executable, *(f"python{one}" for one in PYTHONS)]
    reasons = []
    for candidate in candidates:
        found = shutil.which(candidate)
        said = _said_of(found) if found else "there is no such program"
        if found and said in PYTHONS:
            return found
        is_version = said.replace(".", "").isdigit()
        reasons.append(f"{candidate}: {f'it is Python {said}' if is_version else said}")
    raise UsageError(
        f"models are served in an environment of Python {versions} with its shared library",
        why=reasons[0],
        remedy=f"name another with --python, or install python{PYTHONS[-1]} with its library "
        f"(Debian: python{PYTHONS[-1]}-venv and libpython{PYTHONS[-1]})",
    )


def _said_of(python: str) -> str:
    import subprocess

    try:
        done = subprocess.run(
            [python, "-I", "-c", CHECKED], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip() or "it is no Python interpreter"


def _check_ours(folder: Path) -> None:
    """Refuse to replace what is no serving environment of tfdyno's; raises ``UsageError``."""
    if not folder.exists() or _stamp_of(folder):
        return
    if not folder.is_dir() or any(folder.iterdir()):
        what = f"{folder} holds something else than a serving environment of tfdyno"
        raise UsageError(what, remedy="name a new folder with --folder")


def _fill(folder: Path, python: str, gpu: bool, progress: Callable[[str], None]) -> None:
    progress("making an empty environment")
    _run((python, "-m", "venv", str(folder)), progress)
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check")
    # Hashes are checked; wheels only, so that no package runs code here.
    safe = ("--no-input", "--no-deps", "--only-binary", ":all:", "--require-hashes")
    quiet = ("--progress-bar", "off", "--no-warn-script-location")
    file = REQUIREMENTS[gpu]
    _run((*pip, *safe, *quiet, "--requirement", str(file)), _placed(progress, file))
    progress("trying it")
    _run((pip[0], "-c", "import pytriton.triton, tensorflow_serving.apis, msgspec"), progress)


def _placed(progress: Callable[[str], None], file: Path) -> Callable[[str], None]:
    """Say which of a file's packages pip is at: it takes them in their order."""
    names = [line.split("==")[0] for line in file.read_text().splitlines() if "==" in line]
    place = 0

    def tell(text: str) -> None:
        nonlocal place
        name = text.removeprefix(_LOOKING).split("==")[0].strip()
        if text.startswith(_LOOKING) and name in names:
            place = names.index(name) + 1
        is_one = place and text.startswith((_LOOKING, _DOWNLOADING))
        progress(f"package {place} of {len(names)}: {text}" if is_one else text)

    return tell


def _run(words: tuple[str, ...], progress: Callable[[str], None]) -> None:
    """Run one program to its end; its whole output is heard for progress."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "PYTHONUNBUFFERED": "1"}
    environment = {**os.environ, **quiet}
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    command = Command(words=words, environment=environment, purpose="making the environment")

    def hear(line: str) -> None:
        if told := _told(line):
            progress(told)

    with together([command], chief=0, mark="", progress=progress, output=hear) as crew:
        attend(crew, _error_of, Limits(run_s=LONGEST_S))


def _told(line: str) -> str:
    """Return what a line of pip means to a person; empty: nothing."""
    words = line.split()
    if line.lstrip().startswith("Downloading ") and len(words) > 2:
        return f"{_DOWNLOADING} {words[1].split('/')[-1].split('-')[0]} {' '.join(words[2:4])}"
    if line.startswith("Collecting "):
        return f"{_LOOKING} {words[1]}"
    return "installing the packages" if line.startswith("Installing collected") else ""


def _error_of(process: Process) -> Exception | None:
    if process.exit_code == 0:
        return None
    errors = [line for line in process.lines if line.startswith("ERROR:")]
    why = errors[0].removeprefix("ERROR:").strip() if errors else process.last_words()
    return ToolError(
        "the serving environment could not be made",
        why=why or f"a program ended with exit code {process.exit_code}",
        remedy="look at the network and the disk, then run the same command again",
    )


def _move_paths(made_in: Path, folder: Path) -> None:
    """Let the programs of the environment know the path that it will have."""
    old, new = str(made_in).encode(), str(folder).encode()
    for file in [made_in / "pyvenv.cfg", *(made_in / "bin").iterdir()]:
        if file.is_file() and not file.is_symlink():
            content = file.read_bytes()
            if old in content:
                file.write_bytes(content.replace(old, new))


def _swap(beside: Path, folder: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    try:
        beside.rename(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _held(folder: Path, name: str) -> Iterator[None]:
    """Let one make it at a time; the lock's file goes with it."""
    lock = lock_folder(folder, name)
    try:
        yield
    finally:
        (folder / name).unlink(missing_ok=True)
        lock.close()


def _stamp_of(folder: Path) -> dict[str, object]:
    try:
        stamp: dict[str, object] = json.loads((folder / STAMP).read_bytes())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and {"requirements", "gpu"} <= stamp.keys() else {}


def _digest(*, gpu: object) -> str:
    return hashlib.sha256(REQUIREMENTS[bool(gpu)].read_bytes()).hexdigest()


def _size_bytes(folder: Path) -> int:
    return sum(
        one.stat(follow_symlinks=False).st_size for one in folder.rglob("*") if one.is_file()
    )
