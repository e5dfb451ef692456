"""The only reader and writer of JSON and TOML; refuses unknown keys and wrong types."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import threading
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tfdyno.core.base.errors import ToolError, UsageError

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

Noun = TypeVar("Noun")
_LEARNED: set[object] = set()
_LEARNING = threading.Lock()
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


def to_builtins(value: object) -> Value:
    """Turn nouns into dictionaries, lists, strings and numbers."""
    return msgspec.to_builtins(value)


def to_json(value: object, *, indent: int = 0) -> bytes:
    """Encode nouns as JSON; ``indent`` 0 means compact."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def from_json(data: bytes, kind: type[Noun], *, where: str = "JSON") -> Noun:
    """Decode JSON into ``kind``.

    Raises:
        UsageError: The text is not JSON, has an unknown key or a value of a wrong type;
            ``where`` names the file in the message.
    """
    try:
        raw = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise UsageError(f"{where} is not valid JSON", why=str(error)) from None
    return from_builtins(raw, kind, where=where)


def from_builtins(raw: object, kind: type[Noun], *, where: str = "data") -> Noun:
    """Convert dictionaries and lists into ``kind``; raises ``UsageError`` as ``from_json`` does."""
    try:
        noun = msgspec.convert(raw, learned(kind))
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"{where} has a wrong value", why=str(error)) from None
    unknown = _unknown_key(raw, msgspec.to_builtins(noun), "$")
    if unknown:
        raise UsageError(f"{where} has a key that tfdyno does not know", why=unknown)
    return noun


def learned(kind: Noun) -> Noun:
    """Return the class, which msgspec knows from here on: one thread at a time makes it known.

    msgspec notes on a dataclass what its fields are before it has them all. Another thread that
    decodes the same class for the first time meanwhile reads what is not there: the process dies.
    """
    if kind not in _LEARNED:
        with _LEARNING:
            msgspec.json.Decoder(kind)
            _LEARNED.add(kind)
    return kind


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raises ``UsageError`` naming the file and the line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except RecursionError:
        raise UsageError(f"{path} is not valid TOML", why="it is nested too deep") from None
    except ValueError as error:  # of TOML, of UTF-8, or of a number with thousands of digits
        raise UsageError(f"{path} is not valid TOML", why=str(error)) from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object; raises ``UsageError`` naming the file."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except RecursionError:
        raise UsageError(f"{path} is not valid JSON", why="it is nested too deep") from None
    except ValueError as error:  # of JSON, or of UTF-8
        raise UsageError(f"{path} is not valid JSON", why=str(error)) from None
    if not isinstance(found, dict):
        raise UsageError(f"{path} holds no object of JSON", why=f"it is a {type(found).__name__}")
    return found


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never half.

    Raises:
        UsageError: The folder does not exist or cannot be written, or the path is a folder.
        ToolError: The disk is full, or fails.
    """
    try:
        if path.is_dir():
            raise UsageError(f"cannot write {path}", why="it is a folder")
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        kind = ToolError if error.errno in _NO_ROOM else UsageError
        raise kind(f"cannot write {path}", why=error.strerror or str(error)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        if isinstance(error, OSError):
            why = error.strerror or str(error)
            raise ToolError(f"cannot write {path}", why=why) from None
        raise


def _unknown_key(raw: object, known: object, path: str) -> str:
    if isinstance(raw, dict) and isinstance(known, dict):
        for key, value in raw.items():
            if key not in known:
                return f"{path}.{key}"
            found = _unknown_key(value, known[key], f"{path}.{key}")
            if found:
                return found
    elif isinstance(raw, list) and isinstance(known, list | tuple):
        for index, (item, other) in enumerate(zip(raw, known, strict=False)):
            found = _unknown_key(item, other, f"{path}[{index}]")
            if found:
                return found
    return ""
