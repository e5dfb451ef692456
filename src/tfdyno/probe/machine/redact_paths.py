"""Hide folders that only this machine has; standard ones tell a reader what matters."""

from __future__ import annotations

import re

STANDARD = frozenset(
    """usr lib lib32 lib64 bin sbin etc proc sys dev run var snap boot System Library
    Applications""".split()
)
OPTIONAL = frozenset("conda nvidia cuda rocm intel google python bin homebrew".split())
"""Names under ``/opt`` that many machines share."""
STANDARD_WINDOWS = ("windows", "program files", "program files (x86)", "programdata")
KEPT = re.compile(
    r"[/\\]((?:(?:lib|Lib)[/\\](?:python\d[\d.]*[/\\])?)?(?:site|dist)-packages(?:[/\\].*)?"
    r"|(?:(?:lib64|lib|bin|compat|stubs)[/\\])?[\w.-]*(?:\.so(?:\.[\d.]+)?|\.dll)"
    r"|lib64|lib|bin|compat|stubs)[/\\]?$"
)
"""The end of a path that every machine shares."""
_END = r"[^\s\"'`<>|,;:()\[\]{}]"
_DEVICE = r"(?!(?:job|replica|task|device|physical_device|logical_device)\b)"
"""TensorFlow names its devices like paths."""
_UNIX = re.compile(rf"(?<![\w.~>/<-])/(?!/){_DEVICE}{_END}+")
_HOME = re.compile(
    r"(?<![\w.>~-])/(?:root(?![\w.-])|(?:mnt/[a-z]/)?(?:export/)?(?:home|Users)/[^/\s\"'`<>|,;:=]+)"
)
_WINDOWS = re.compile(
    r"(?<!\w)[A-Za-z]:[\\/]+(?:[^\\/\"'`<>|,;:=\r\n\[\](){}]+[\\/]+)*[^\s\\/\"'`<>|,;:=\[\](){}]*"
)
_WINDOWS_HOME = re.compile(
    r"(?<!\w)[A-Za-z]:[\\/]+(?:Users|Documents and Settings)[\\/]+[^\\/\"'<>|:\r\n,;]+",
    re.IGNORECASE,
)
_SHARE = re.compile(r"\\\\[\w.$-]+\\[\w.$-]+")
_ENVIRONMENT = re.compile(r"([/\\]envs[/\\])[^/\\\s\"':;,]+")


def hide_paths(text: str, homes: tuple[str, ...]) -> str:
    """Write homes as ``~``, other folders outside the standard ones as ``<path>``."""
    for home in sorted(homes, key=len, reverse=True):
        if len(home) > 1:
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text, flags=re.IGNORECASE)
    text = _WINDOWS_HOME.sub("~", text)
    text = _HOME.sub("~", text)
    text = _SHARE.sub(r"\\\\<host>\\<path>", text)
    text = re.sub(rf"~[/\\]{_END}*", _below_home, text)
    text = _WINDOWS.sub(_windows, text)
    text = _UNIX.sub(_unix, text)
    return _ENVIRONMENT.sub(r"\1<env>", text)


def _below_home(one: re.Match[str]) -> str:
    return "~/" + _tail(one[0])


def _unix(one: re.Match[str]) -> str:
    path = one[0]
    top, _, rest = path[1:].partition("/")
    if top in STANDARD or (top == "opt" and rest.partition("/")[0] in OPTIONAL):
        return path
    if not rest:
        return path if top in {"opt", "tmp"} else "<path>"
    return ("/tmp/" if top == "tmp" else "<path>/") + _tail(path)


def _windows(one: re.Match[str]) -> str:
    path = one[0]
    parts = [part for part in re.split(r"[\\/]+", path)[1:] if part]
    if parts and parts[0].lower() in STANDARD_WINDOWS:
        return path
    return "<path>\\" + _tail(path)


def _tail(path: str) -> str:
    """Return what may stay of a path: from ``site-packages`` on, or the name of a library."""
    kept = KEPT.search(path)
    return kept[1].lstrip("/\\") if kept else "…"
