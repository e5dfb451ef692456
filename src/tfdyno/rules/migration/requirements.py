"""``tensorflow-gpu`` in the files that say what to install."""

from __future__ import annotations

import ast
import configparser
import shlex
import tomllib
from pathlib import PurePath
from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.migration.hits import Hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PACKAGE = "tensorflow-gpu"
_LAST = (2, 12)
"""First release of which ``tensorflow-gpu`` is an empty package that fails to install."""
_INSTALLERS = ("install", "add", "download", "wheel")
_TOOLS = ("pip", "pip3", "uv", "poetry", "pdm", "pipenv", "pipx")
_SHELL = (".sh", ".bash", ".yml", ".yaml", ".dockerfile", ".slurm", ".sbatch")
_DEEPEST = 12


def is_requirements(label: str) -> bool:
    """Return whether a file of this name is read for what it installs."""
    path = PurePath(label.replace("\\", "/"))
    name = path.name.lower()
    return (
        name in ("pyproject.toml", "setup.cfg", "pipfile", "environment.yml", "environment.yaml")
        or name.startswith(("dockerfile", "containerfile"))
        or path.suffix.lower() in _SHELL
        or _is_list(path)
    )


def find(label: str, text: str) -> tuple[list[Hit], list[str]]:
    """Return the finds of one such file, and what of it could not be read."""
    path = PurePath(label.replace("\\", "/"))
    name = path.name.lower()
    try:
        if name in ("pyproject.toml", "pipfile"):
            return list(_in_strings(label, text, _toml(tomllib.loads(text)))), []
        if name == "setup.cfg":
            return list(_in_strings(label, text, _setup_cfg(text))), []
    except (tomllib.TOMLDecodeError, configparser.Error, RecursionError) as error:
        return [], [f"{label} was not read: {' '.join(str(error).split())[:200]}."]
    if name.startswith("environment."):
        return list(_environment(label, text)), []
    return list(_list(label, text) if _is_list(path) else shell(label, text)), []


def in_python(label: str, text: str, tree: ast.Module) -> Iterator[Hit]:
    """Yield strings of a ``setup.py`` that are requirements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _hit(node.value, f"{label}:{node.lineno}", _at(text, node.lineno))


def shell(label: str, text: str, *, source: str = "") -> Iterator[Hit]:
    """Yield installing commands of a shell script, a Dockerfile or a notebook cell."""
    for number, line in _logical_lines(text):
        words = _words(line)
        for index, word in enumerate(words[:-1]):
            tool = word.rpartition("/")[2].lstrip("!%([\"'")
            rest = words[index + 1 :]
            if tool in _TOOLS and any(word in _INSTALLERS for word in rest[:3]):
                for given in _until_end(rest):
                    yield from _hit(given, source or f"{label}:{number}", line.strip())
                break


def _is_list(path: PurePath) -> bool:
    name = path.name.lower()
    is_text = path.suffix.lower() in (".txt", ".in")
    signs = ("requirement", "constraint", "reqs", "deps")
    return is_text and (
        any(sign in name for sign in signs) or path.parent.name.lower() == "requirements"
    )


def _list(label: str, text: str) -> Iterator[Hit]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from _hit(line, f"{label}:{number}", line.strip())


def _environment(label: str, text: str) -> Iterator[Hit]:
    """Read a conda file's entries: those under ``pip:`` come from PyPI, the others do not."""
    indent = -1
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if bare.replace(" ", "") in ("-pip:", "pip:"):
            indent = depth
        elif indent >= 0 and bare and depth <= indent:
            indent = -1
        elif indent >= 0:
            yield from _hit(bare.lstrip("- ").strip("\"'"), f"{label}:{number}", bare)


def _in_strings(label: str, text: str, found: Iterable[str]) -> Iterator[Hit]:
    """Yield a parsed file's requirements, each with the line on which it stands."""
    lines = text.splitlines()
    used: set[int] = set()
    for requirement in found:
        if not _name(requirement).startswith("tensorflow"):
            continue
        word = requirement.split(" ")[0].split(";")[0]
        number = next(
            (at for at, line in enumerate(lines, 1) if word in line and at not in used), 1
        )
        used.add(number)
        yield from _hit(requirement, f"{label}:{number}", _at(text, number))


def _toml(value: object, depth: int = 0) -> Iterator[str]:
    """Yield strings of a TOML file, and keys with their version as poetry writes them."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _toml(one, depth + 1)
    elif isinstance(value, dict):
        for key, one in value.items():
            version = one.get("version", "") if isinstance(one, dict) else one
            if _name(key) == _PACKAGE and isinstance(version, str):
                yield f"{key}{_poetry(version)}"
            else:
                yield from _toml(one, depth + 1)


def _poetry(version: str) -> str:
    """Return a version as poetry writes it, as pip would: ``^2.4`` is ``<3``."""
    bare = version.strip()
    if bare.startswith("^"):
        return f"<{(version_key(bare) or (2,))[0] + 1}"
    if bare[:1].isdigit():
        return f"=={bare}"
    return "" if bare == "*" else bare.replace("~", "~=", 1) if bare[:2] != "~=" else bare


def _setup_cfg(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    for section in parser.sections():
        if section.startswith("options"):
            for value in parser[section].values():
                yield from (line.strip() for line in (value or "").splitlines())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines, each with the number of its first."""
    start, held = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.rstrip().endswith("\\"):
            held += line.rstrip()[:-1] + " "
            continue
        yield start, held + line
        start, held = 0, ""
    if held:
        yield start, held


def _words(line: str) -> list[str]:
    """Return words of a command; a line that no shell can read is split at its blanks."""
    if line.lstrip().startswith("#"):
        return []
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _until_end(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in ("&&", "||", ";", "|"):
            return
        yield word.rstrip(";,]")


def _name(requirement: str) -> str:
    """Return the normalised name that a requirement begins with, or nothing."""
    end = 0
    while end < len(requirement) and (requirement[end].isalnum() or requirement[end] in "-_."):
        end += 1
    return requirement[:end].lower().replace("_", "-").replace(".", "-").rstrip("-")


def _hit(requirement: str, source: str, text: str) -> Iterator[Hit]:
    bare = requirement.strip().strip("\"'")
    if _name(bare) != _PACKAGE:
        return
    bounds = bare[len(_PACKAGE) :].split("#")[0].split(";")[0].strip()
    is_old = any(_is_below(sign, version) for sign, version in _bounds(bounds))
    cause = "tensorflow_gpu_old" if is_old else "tensorflow_gpu"
    yield Hit(cause=cause, source=source, text=text, verdict="proven", name=bare[:60])


def _is_below(sign: str, version: str) -> bool:
    """Return whether a bound keeps out 2.12, the empty package."""
    release = version_key(version)[:2]
    return (bool(release) and sign in ("==", "~=", "<") and release < _LAST) or (
        sign == "<" and release == _LAST
    )


def _bounds(text: str) -> Iterator[tuple[str, str]]:
    for part in text.strip("()[] ").split(","):
        bare = part.strip()
        for sign in ("===", "==", "~=", "<=", ">=", "<", ">", "="):
            if bare.startswith(sign):
                yield (
                    {"<=": "==", "===": "==", "=": "=="}.get(sign, sign),
                    bare[len(sign) :].strip(),
                )
                break


def _at(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
