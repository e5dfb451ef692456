"""The facts of a machine as a file: the full record, or a few told words."""

from __future__ import annotations

import json
import math
import stat
from typing import TYPE_CHECKING, Any, NoReturn

from tfdyno.core.base.codec import from_builtins, to_json, write_atomic
from tfdyno.core.base.errors import UsageError
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.near import no_such
from tfdyno.probe.machine.redact import Identity, redact_facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOLD = frozenset("tf python cuda cudnn driver gpu os keras cuda_visible_devices gpu_count".split())
"""Keys of the short form; the words behind them are free."""
MOST_BYTES = 4 << 20
MOST_DIGITS = 18
Told = dict[str, str]


def read_environment(path: Path) -> MachineFacts | Told:
    """Read ``--env FILE``.

    Returns:
        The facts of a full record, as ``--save-env`` writes it, or the words of the short form.

    Raises:
        UsageError: The file is missing, no regular file, too large, not JSON, or has an unknown
            key or a value of a wrong type.
    """
    raw = _json_of(path)
    if not isinstance(raw, dict):
        raise _wrong(path, "it must hold one JSON object")
    unknown = [key for key in raw if key not in TOLD]
    if not unknown:
        return told(path, raw)
    full = frozenset(MachineFacts.__slots__)
    strange = [key for key in unknown if key not in full]
    if strange:
        raise _wrong(path, f"the key '{strange[0][:60]}' is not known")
    try:
        return from_builtins(raw, MachineFacts, where=str(path))
    except RecursionError:
        raise _wrong(path, "it is nested too deeply") from None


def told(path: Path, raw: Mapping[str, Any]) -> Told:
    """Return words of the short form; numbers become text, null and empty words are left out.

    Raises:
        UsageError: A value is neither text nor a number, or too long to be one of these.
    """
    words: Told = {}
    for key, value in raw.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float | None):
            raise _wrong(path, f"'{key}' must be a text such as {_example(key)}")
        text = "" if value is None else str(value)
        if len(text) > 500:
            raise _wrong(path, f"'{key}' has {len(text)} characters")
        if text or key == "cuda_visible_devices":
            words[key] = text
    return words


def save_environment(path: Path, facts: MachineFacts, identity: Identity) -> None:
    """Write the facts for ``--env`` on another machine, private parts taken out.

    Raises:
        UsageError: The file cannot be written.
    """
    write_atomic(path, to_json(redact_facts(facts, identity), indent=1) + b"\n")


def _json_of(path: Path) -> object:
    try:
        if not path.exists():
            raise no_such(path, what="machine file")
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise _wrong(path, "it is no regular file")
        if about.st_size > MOST_BYTES:
            raise _wrong(path, f"it is larger than {MOST_BYTES >> 20} MiB")
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise _wrong(path, why) from None
    if not text.strip():
        raise _wrong(path, "it is empty")
    if "\0" in text:
        raise _wrong(path, "it is no text")
    try:
        raw: object = json.loads(
            text, parse_constant=_refuse, parse_int=_whole, parse_float=_finite
        )
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _wrong(path, "it holds half of a character") from None
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _wrong(path, f"it is no complete JSON ({why})") from None
    return raw


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"the number {digits[:9]}… is larger than any of a machine")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _example(key: str) -> str:
    examples = {"os": "Ubuntu 22.04", "gpu": "RTX 4090", "python": "3.11", "gpu_count": "2"}
    return f'"{examples.get(key, "12.5")}"'


def _wrong(path: Path, why: str) -> UsageError:
    keys = "tf, python, cuda, cudnn, driver, gpu, os"
    remedy = f"give a file of --save-env, or an object with the keys {keys}"
    return UsageError(f"cannot use {path} as --env", why=why, remedy=remedy)
