"""Settings of devices and arguments of Keras 2 that go with Horovod."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.rules.horovod.draft import Draft

_PINS = ("set_visible_devices", "visible_device_list")
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", "local_rank")
_PIN = "tfdyno gives each process its GPUs before TensorFlow starts"
_GROWTH = "devices cannot be changed any more when the script begins: use --set memory_growth=true"
_OLD_ARGUMENT = "experimental_run_tf_function"
_LEGACY = "optimizers.legacy"


def settings_out(draft: Draft) -> None:
    """Take out what sets devices: under tfdyno they are made when the script begins."""
    for node in ast.walk(draft.script.tree):
        if isinstance(node, ast.Assign | ast.Expr) and not draft.is_gone(node):
            words = draft.script.source[slice(*draft.script.span(node))]
            if any(pin in words for pin in _PINS) or all(pin in words for pin in _ENVIRONMENT):
                draft.dropped.add(node)
                draft.change(node, "the GPU of a process", _PIN)
            elif "set_memory_growth" in words:
                draft.dropped.add(node)
                draft.change(node, "set_memory_growth", _GROWTH)
        elif isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg == _OLD_ARGUMENT:
                    argument_out(draft, node, word, "Keras 3 has no such argument")
        elif isinstance(node, ast.Attribute) and node.attr == "legacy":
            _plain_optimizer(draft, node)


def _plain_optimizer(draft: Draft, node: ast.Attribute) -> None:
    """``keras.optimizers.legacy.SGD`` is ``keras.optimizers.SGD``."""
    if getattr(node.value, "attr", getattr(node.value, "id", "")) == "optimizers":
        draft.unwrap(node, node.value)
        draft.change(node, _LEGACY, "Keras 3 has one kind of optimizers")


def argument_out(draft: Draft, call: ast.Call, word: ast.keyword, why: str) -> None:
    """Take a keyword out of a call, with the comma before it, or behind it where it is first."""
    given = sorted([*call.args, *(one.value for one in call.keywords)], key=draft.script.span)
    place = given.index(word.value)
    start = draft.script.text.at(word.lineno, word.col_offset)
    _, end = draft.script.span(word.value)
    if place:
        start = draft.script.span(given[place - 1])[1]
    elif len(given) > 1:
        following = next(one for one in call.keywords if one.value is given[1])
        end = draft.script.text.at(following.lineno, following.col_offset)
    draft.cut(start, end)
    draft.change(word.value, f"{word.arg}=", why)
