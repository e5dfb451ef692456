"""Protocol buffers as text: what TensorFlow Serving and Triton read their settings from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

INDENT = "  "


class Word(str):
    """A name of an enumeration, which stands without quotes."""

    __slots__ = ()


def text_proto(message: Mapping[str, object], *, head: Sequence[str] = ()) -> str:
    """Return fields in their order, messages in braces, a list as the same field again and again.

    Args:
        message: Texts, numbers, truths, ``Word``s, mappings and lists of these; None is left out.
        head: Lines of comment.
    """
    comments = "".join(f"# {line}\n" for line in head)
    return comments + "".join(f"{line}\n" for line in _lines(message, ""))


def _lines(message: Mapping[str, object], indent: str) -> list[str]:
    found = []
    for name, value in message.items():
        values = value if isinstance(value, list | tuple) else [value]
        for one in values:
            found += _field(name, one, indent)
    return found


def _field(name: str, value: object, indent: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        inner = _lines(value, indent + INDENT)
        return [f"{indent}{name} {{", *inner, f"{indent}}}"] if inner else [f"{indent}{name} {{}}"]
    return [f"{indent}{name}: {_scalar(value)}"]


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Word) or not isinstance(value, str):
        return str(value)
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{quoted}"'
