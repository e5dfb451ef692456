"""A script of TensorFlow's backend as one that Keras also trains on JAX."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.doctor.migration import Migration
from tfdyno.rules.jax import header
from tfdyno.rules.jax.calls import call_patches
from tfdyno.rules.jax.keras_calls import pipeline
from tfdyno.rules.jax.methods import shape_texts
from tfdyno.rules.jax.project import cause_of, effect_of
from tfdyno.rules.rewrite.diff import unified
from tfdyno.rules.rewrite.draft import Draft
from tfdyno.rules.rewrite.source_text import Patch, argument_patches

if TYPE_CHECKING:
    from tfdyno.rules.jax.finds import File, Find
    from tfdyno.rules.jax.project import Judged

SEED = "seed=self.seed_generator"
_LAST = 99
"""More arguments than any function has: the new one is given by name."""
_WHY = {
    "operation": "JAX traces it; keras.ops runs on every backend",
    "random": "the layer keeps the state of its random numbers; they are others than before",
    "tf_function": "Keras compiles the step by JAX",
    "tensor_method": "arrays of JAX have no such method",
    "metric_result": "only arrays leave a compiled step",
    "seed": "Keras draws from generators of its own",
    "in_dataset": "a Pipeline of layers runs in a data set on every backend",
    "backend_set": "the script itself sets the backend",
}


def moved(one: Judged, path: str) -> Migration:
    """Change what is safe, and list what is left to a person.

    Args:
        one: The script, judged with the files that it imports.
        path: As the user shall see it.
    """
    script, names = one.file.script, header.Names(one.file.script)
    draft, seeded = Draft(script), set[ast.Expr]()
    for found in one.finds:
        if found.is_safe:
            _change(draft, found, one.file, names.keras, seeded)
        elif effect_of(found.cause) == "stops":
            _hand(draft, found)
    for statement in seeded:
        _seed(draft, statement, one.file, names.keras)
    header.write(draft, names, one.file)
    after = header.without_tensorflow(draft.result(), names)
    return Migration(
        path=path, before=script.source, after=after, changes=draft.changes, hands=draft.hands,
        diff=unified(path, script.source, after),
    )  # fmt: skip


def _hand(draft: Draft, found: Find) -> None:
    cause = cause_of(found.cause)
    step = cause.fix[0].text
    remedy = f"instead: {found.instead}" if found.instead else _lower(step.en if step else "")
    draft.hand(found.node, f"{found.name}: {_lower(cause.why.en)}", remedy)


def _lower(sentence: str) -> str:
    """Write a sentence as a part of one: its first word small unless it is a name."""
    text = sentence.strip().rstrip(".")
    first = text.split(" ")[0]
    is_name = first.isupper() or first in ("Python", "TensorFlow", "Keras")
    return text if is_name else text[:1].lower() + text[1:]


def _change(draft: Draft, found: Find, file: File, keras: str, seeded: set[ast.Expr]) -> None:
    """Write one place anew."""
    node, script = found.node, file.script
    assert isinstance(node, ast.expr)
    draft.change(node, found.name, _WHY[found.cause])
    if found.cause == "operation":
        assert found.row is not None
        if isinstance(node, ast.Call):
            draft.patches += call_patches(node, found.row, script, keras)
        else:
            draft.replace(node, found.row.keras.replace("keras.", f"{keras}.", 1))
    elif found.cause == "random":
        assert isinstance(node, ast.Call)
        _random(draft, node, found, file, keras)
        statement = file.seeded_init(node)
        assert statement is not None
        seeded.add(statement)
    elif found.cause == "tf_function":
        end = node.end_lineno or node.lineno
        draft.cut(script.text.at(node.lineno, 0), script.text.at(end + 1, 0))
    elif found.cause == "tensor_method":
        assert isinstance(node, ast.Call)
        _method(draft, node, keras)
    elif found.cause == "metric_result":
        start, end = script.span(node)
        draft.patches.append(Patch(start=start, end=start, text=f"{keras}.ops.convert_to_tensor("))
        draft.patches.append(Patch(start=end, end=end, text=")"))
    elif found.cause == "seed":
        assert isinstance(node, ast.Call)
        draft.replace(node.func, f"{keras}.utils.set_random_seed")
    elif found.cause == "in_dataset":
        call = pipeline(node, file)
        assert call is not None
        draft.replace(call.func, f"{keras}.layers.Pipeline")
    elif found.cause == "backend_set":
        _backend(draft, node, file)


def _random(draft: Draft, node: ast.Call, found: Find, file: File, keras: str) -> None:
    if found.row is None:
        draft.patches += argument_patches(node, SEED, _LAST, file.script.text)
    else:
        draft.patches += call_patches(node, replace(found.row, adds=SEED), file.script, keras)


def _seed(draft: Draft, statement: ast.Expr, file: File, keras: str) -> None:
    """Keep a state for random numbers behind ``super().__init__()``, unless there is one."""
    owner = file.places.class_of(statement)
    kept = {getattr(one, "attr", "") for one in ast.walk(owner)} if owner else set()
    if "seed_generator" in kept:
        return
    _, end = file.script.span(statement)
    before = " " * statement.col_offset
    text = f"{draft_end(file)}{before}self.seed_generator = {keras}.random.SeedGenerator()"
    draft.patches.append(Patch(start=end, end=end, text=text))


def draft_end(file: File) -> str:
    """Return how the lines of a script end."""
    return "\r\n" if "\r\n" in file.script.source else "\n"


def _method(draft: Draft, node: ast.Call, keras: str) -> None:
    told = shape_texts(node)
    if told is None:
        assert isinstance(node.func, ast.Attribute)
        told = (node.func.value, f"{keras}.ops.convert_to_numpy(", ")")
    inner, before, behind = told
    (start, end), (first, last) = draft.script.span(node), draft.script.span(inner)
    draft.patches.append(Patch(start=start, end=first, text=before))
    draft.patches.append(Patch(start=last, end=end, text=behind))


def _backend(draft: Draft, node: ast.expr, file: File) -> None:
    """Write jax over the constant that KERAS_BACKEND is set to."""
    statement = file.script.statement(node)
    for one in ast.walk(statement):
        if isinstance(one, ast.Constant) and one.value in ("tensorflow", "torch"):
            draft.replace(one, '"jax"')
