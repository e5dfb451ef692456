"""``hvd.DistributedOptimizer`` taken off, with what its arguments meant."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.horovod.names import optimizer_words
from tfdyno.rules.rewrite.source_text import argument_patches

if TYPE_CHECKING:
    from tfdyno.rules.horovod.names import Entry
    from tfdyno.rules.migration.sites import Site
    from tfdyno.rules.rewrite.draft import Draft

PASSES = "backward_passes_per_step"
AVERAGED = "average_aggregated_gradients"
ACCUMULATION = "gradient_accumulation_steps"
_COMPRESSED = "its compression goes: gradients are exchanged as they are, in float32"
_BIAS = "Adam then corrects its bias by updates, with Horovod it was by batches"
_LAST = 99
"""A place behind all arguments that an optimizer takes by position."""


def unwrapped(draft: Draft, site: Site, entry: Entry, name: str) -> None:
    """Leave the optimizer that is wrapped; what cannot be told is left to a person."""
    call = site.node
    assert isinstance(call, ast.Call)
    inner = site.argument("optimizer", 0)
    words = {word.arg: word.value for word in call.keywords if word.arg and word.arg != "optimizer"}
    is_open = any(word.arg is None for word in call.keywords) or len(call.args) > 1
    if inner is None or is_open:
        why = "the arguments of DistributedOptimizer are not named here"
        draft.hand(call, why, "name each of them: compression=..., op=...")
        return
    if not all(_is_known(draft, call, word, value) for word, value in words.items()):
        return
    if not _accumulated(draft, site, inner, words):
        return
    draft.change(call, f"hvd.{name}", entry.why)
    if "compression" in words and not draft.script.code(words["compression"]).endswith(".none"):
        draft.change(call, f"{name}(compression=)", _COMPRESSED)
    draft.leave(call, inner)


def _is_known(draft: Draft, call: ast.Call, keyword: str, value: ast.expr) -> bool:
    word = optimizer_words().get(keyword)
    if word is None:
        why = f"{keyword} is nothing that Horovod 0.28 documents"
        draft.hand(call, why, "leave it out")
        return False
    last = draft.script.code(value).rpartition(".")[2]
    if word.accepted in ("*", last):
        return True
    draft.hand(value, word.why, word.remedy)
    return False


def _accumulated(draft: Draft, site: Site, inner: ast.expr, words: dict[str, ast.expr]) -> bool:
    """Hand batches per update to Keras' own optimizer; False: a person is needed."""
    given = words.get(PASSES)
    if given is None or site.value(PASSES) == 1:
        return True
    if site.value(AVERAGED) is not True:
        why = "Horovod adds the gradients of these batches, and the trainer averages them"
        remedy = f"add {AVERAGED}=True, and with SGD multiply the learning rate by {PASSES}"
        draft.hand(given, why, f"{remedy}; then migrate")
        return False
    made = _made(draft, inner)
    text, count = draft.script.text, draft.script.code(given)
    patches = argument_patches(made, f"{ACCUMULATION}={count}", _LAST, text) if made else []
    if not patches:
        why = "the optimizer that accumulates is not made here"
        draft.hand(given, why, f"give it {ACCUMULATION}={count} where it is made")
        return False
    draft.patches += patches
    why = f"Keras' optimizer accumulates: {ACCUMULATION}={count}"
    draft.change(given, PASSES, f"{why} ({_BIAS})")
    return True


def _made(draft: Draft, inner: ast.expr) -> ast.Call | None:
    """Return the call that makes the optimizer, here or in the one assignment to its name."""
    if isinstance(inner, ast.Name):
        values = [one.value for one in draft.script.assigned(inner.id)]
        values = [one for one in values if not any(inner is node for node in ast.walk(one))]
        inner = values[0] if len(values) == 1 else inner
    return inner if isinstance(inner, ast.Call) else None
