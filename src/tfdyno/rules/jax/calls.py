"""One call of a TensorFlow operation, written as a call of ``keras.ops`` in the same text."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tfdyno.rules.jax.tables import DROPPED, REST, Argument, Operation
from tfdyno.rules.rewrite.source_text import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.rewrite.script import Script

_FIELD = re.compile(r"\{(\w+)\}")
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Constant | ast.Subscript | ast.List | ast.Tuple
_FORMATS = {"NHWC": "channels_last", "NWC": "channels_last", "NCHW": "channels_first"}
DTYPES = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 "
    "float64".split()
)
"""Names of types that Keras takes as words."""
_SWAP = "swap_"
KERAS = "keras."


class CannotRewriteError(ValueError):
    """The call has what the table does not; the text says what, for a person."""


def call_patches(
    node: ast.Call, row: Operation, script: Script, keras: str = "keras"
) -> tuple[Patch, ...]:
    """Return what turns a call into one of Keras; the text of its arguments stays as it is.

    Args:
        node: The call of ``row.tensorflow``.
        row: What Keras has in its place.
        script: That the call stands in.
        keras: What the script calls Keras.

    Raises:
        CannotRewriteError: An argument is not in the table, or its value is of another form.
    """
    given = _given(node, row)
    _check(given, row, script)
    name = row.keras.replace(KERAS, f"{keras}.")
    if row.is_expression:
        return tuple(_expression(node, name, given, script))
    return tuple(_call(node, name, row, given, script, keras))


_Given = list[tuple[Argument, ast.expr, ast.keyword | None]]


def _given(node: ast.Call, row: Operation) -> _Given:
    """Return each argument with its value, and its keyword where it is given by name."""
    found: _Given = []
    known = {one.name: one for one in row.arguments}
    placed = [one for one in row.arguments if not one.is_word]
    for place, value in enumerate(node.args):
        if isinstance(value, ast.Starred) and REST not in known:
            raise CannotRewriteError("its arguments come from a list")
        if (
            place < len(placed)
            and placed[place].name != REST
            and not isinstance(value, ast.Starred)
        ):
            found.append((placed[place], value, None))
        elif REST in known:
            found.append((known[REST], value, None))
        else:
            raise CannotRewriteError("it is given more arguments than Keras takes")
    for word in node.keywords:
        if word.arg is None:
            raise CannotRewriteError("its arguments come from a dictionary")
        if word.arg not in known or word.arg == REST:
            raise CannotRewriteError(f"Keras has no {word.arg}=")
        found.append((known[word.arg], word.value, word))
    return found


def _check(given: _Given, row: Operation, script: Script) -> None:
    """Refuse values that mean another thing to Keras; raises ``CannotRewriteError``."""
    names = {one.name for one, _, _ in given}
    for one in row.arguments:
        if one.form == "given" and one.name not in names:
            raise CannotRewriteError(f"without {one.name}= it is another thing in Keras")
    for one, value, _ in given:
        kind = value.value if isinstance(value, ast.Constant) else None
        if one.form == "int" and not isinstance(kind, int):
            raise CannotRewriteError(
                f"{one.name}={script.code(value)} means another thing to Keras"
            )
        if one.form == "number" and isinstance(kind, str):
            raise CannotRewriteError(f"{one.name}={script.code(value)} is a word of TensorFlow")
        if one.form == "lower" and not isinstance(kind, str):
            raise CannotRewriteError(f"{one.name}={script.code(value)} is no plain word")
        if one.form == "float" and not _is_float(value):
            raise CannotRewriteError(f"{one.name}={script.code(value)} needs keras.random.randint")
        if one.form == "format" and kind not in _FORMATS:
            raise CannotRewriteError(f"Keras has no layout {script.code(value)}")
        if one.form.startswith(_SWAP) and not isinstance(kind, bool):
            raise CannotRewriteError(f"{one.name}={script.code(value)} is not known before it runs")


def _is_float(value: ast.expr) -> bool:
    """Return whether a type is one of numbers with a point, as far as its name tells."""
    name = getattr(value, "attr", getattr(value, "value", ""))
    return isinstance(name, str) and ("float" in name or name == "dtype")


def _call(
    node: ast.Call, name: str, row: Operation, given: _Given, script: Script, keras: str
) -> Iterator[Patch]:
    start, end = script.span(node.func)
    yield Patch(start=start, end=end, text=name)
    kept = [one for one in given if one[0].keras != DROPPED]
    for one, value, word in given:
        if one.keras == DROPPED:
            yield _without(node, value, word, script)
        if one.form.startswith(_SWAP) and getattr(value, "value", False):
            yield from _swapped(one.form.removeprefix(_SWAP), given, script, keras)
    is_named = False
    for one, value, word in kept:
        is_named = is_named or one.by_name or word is not None
        first, _ = script.span(value)
        at = script.text.at(word.lineno, word.col_offset) if word else first
        if is_named and one.name != REST:
            yield Patch(start=at, end=first, text=f"{one.keras}=")
        yield from _value(one, value, script)
    if row.adds and row.adds.partition("=")[0] not in {one.keras for one, _, _ in kept}:
        at, last = script.text.token_before(script.span(node)[1] - 1)
        lead = {"(": "", ",": " "}.get(last, ", ") if kept else ""
        yield Patch(start=at, end=at, text=f"{lead}{row.adds}")


def _value(one: Argument, value: ast.expr, script: Script) -> Iterator[Patch]:
    """Write a value as Keras has it: types and layouts are plain words."""
    text = ""
    if one.form in ("lower", "format"):
        word = str(getattr(value, "value", ""))
        text = _FORMATS.get(word, word.lower())
    elif one.keras == "dtype" and isinstance(value, ast.Attribute) and value.attr in DTYPES:
        text = value.attr
    if text:
        first, last = script.span(value)
        yield Patch(start=first, end=last, text=f'"{text}"')


def _swapped(name: str, given: _Given, script: Script, keras: str) -> Iterator[Patch]:
    """Write an argument with its last two axes exchanged."""
    for one, value, _ in given:
        if one.name == name:
            first, last = script.span(value)
            yield Patch(start=first, end=first, text=f"{keras}.ops.swapaxes(")
            yield Patch(start=last, end=last, text=", -1, -2)")


def _without(node: ast.Call, value: ast.expr, word: ast.keyword | None, script: Script) -> Patch:
    """Cut an argument with the comma before it, or behind it where it is the first."""
    both = sorted([*node.args, *(one.value for one in node.keywords)], key=script.span)
    place = both.index(value)
    start = script.text.at(word.lineno, word.col_offset) if word else script.span(value)[0]
    _, end = script.span(value)
    if place:
        return Patch(start=script.span(both[place - 1])[1], end=end, text="")
    if len(both) > 1:
        following = both[1]
        named = next((one for one in node.keywords if one.value is following), None)
        after = (
            script.text.at(named.lineno, named.col_offset) if named else script.span(following)[0]
        )
        return Patch(start=start, end=after, text="")
    return Patch(start=start, end=end, text="")


def _expression(node: ast.Call, text: str, given: _Given, script: Script) -> Iterator[Patch]:
    """Write the expression round the arguments, which must stand in its order."""
    kept = [(one, value) for one, value, _ in given if one.keras != DROPPED]
    fields = _FIELD.findall(text)
    if [one.name for one, _ in kept] != fields:
        raise CannotRewriteError("its arguments stand in another order")
    start, end = script.span(node)
    parts = _FIELD.split(text)[::2]
    for place, (_, value) in enumerate(kept):
        first, last = script.span(value)
        is_alone = isinstance(value, _ATOMS) or not _is_bare(parts, place)
        opening, closing = ("", "") if is_alone else ("(", ")")
        yield Patch(start=start, end=first, text=parts[place] + opening)
        yield Patch(start=last, end=last, text=closing)
        start = last
    yield Patch(start=start, end=end, text=parts[-1])


def _is_bare(parts: list[str], place: int) -> bool:
    """Return whether an argument stands beside an operator, so that it may need brackets."""
    return parts[place].endswith(" ") or parts[place + 1].startswith(" ")
