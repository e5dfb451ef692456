"""Where a loss became NaN: data, weights, a layer, the loss or the gradients, with the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from tfdyno.runtime.base.step_hooks import Call, floats
from tfdyno.runtime.nan import words
from tfdyno.runtime.nan.look import (
    NanInspection,
    Sight,
    is_finite,
    look,
    named,
    not_finite_inside,
    parts,
    value_of,
)
from tfdyno.runtime.nan.look import sight as sight_of
from tfdyno.runtime.nan.words import HALF, HALF_MOST, LARGE, finding

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Batch, Model, Tensor, Value
    from tfdyno.core.doctor.finding import Finding

Evidence = list[tuple[str, str]]
FORWARD = "the forward pass of this batch, layer by layer"
BACKWARD = "the backward pass of this batch"
LOSS = "the loss of this batch"


def locate(model: Model, batch: Batch, *, seen: str = "") -> Finding:
    """Find where a loss stops to be finite.

    Args:
        model: Compiled and built, with the weights of the last good checkpoint where there is
            one. Nothing of it is changed.
        batch: What its ``train_step`` takes; under a strategy also as the replicas have it.
        seen: What showed it, as ``loss is nan at step 31 of epoch 1``.

    Returns:
        What was found in the first of: inputs and labels, weights, forward pass, loss, gradients.
    """
    evidence: Evidence = [(seen, "the run")] if seen else []
    pieces = parts(batch)
    for piece in pieces:
        if found := _in_data(piece, evidence):
            return found
    if found := _in_weights(model, evidence):
        return found
    for piece in pieces:
        looked = look(model, piece)
        if found := (
            _in_forward(looked, evidence)
            or _in_loss(model, piece, looked, evidence)
            or _in_gradients(looked, evidence)
        ):
            return found
    return _nowhere(looked, evidence)


def _in_data(batch: Batch, evidence: Evidence) -> Finding | None:
    x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
    groups = (("x", x), ("y", y), ("sample_weight", weight))
    for name, tensor in [pair for title, part in groups for pair in named(part, title)]:
        if is_finite(tensor):
            continue
        seen = sight_of(tensor)
        place = f"sample {seen.first[0]} of the batch" if seen.first else "the batch"
        if seen.column is not None:
            place += f", feature {seen.column}"
        text = f"{name}: {seen}; the first at {list(seen.first)}"
        if seen.column is not None:
            text += f", all of them in feature {seen.column}"
        what = {"x": "inputs", "y": "labels"}.get(name[:1], "sample weights")
        return finding(
            f"The {what} hold values that are not finite: {name}, {place}.",
            "One such value makes the loss of its whole batch NaN, and then every weight.",
            [*evidence, (text, "the batch")],
            [words.cleaning(f"{name}, {place}")],
        )
    return None


def _in_weights(model: Model, evidence: Evidence) -> Finding | None:
    optimizer = getattr(model, "optimizer", None)
    weights = [("weight", v) for v in model.variables]
    weights += [("optimizer's", v) for v in getattr(optimizer, "variables", ())]
    weights = [(kind, v) for kind, v in weights if "float" in str(v.dtype)]
    bad = [(kind, v) for kind, v in weights if not is_finite(value_of(v))]
    if not bad:
        return None
    kind, first = bad[0]
    what = "weights" if kind == "weight" else "the optimizer's variables"
    text = f"{first.path}: {sight_of(value_of(first))}; {len(bad)} of {len(weights)} variables"
    half = getattr(model, "compute_dtype", "") == HALF
    return finding(
        f"Before this batch {what} were not finite already, the first is {first.path}.",
        "An earlier update was too large or was made from a gradient that was not finite; every "
        "batch after it gives NaN.",
        [*evidence, (text, "the variables of the model and of its optimizer")],
        [words.DIVERGED, *[words.BFLOAT16] * half],
        half=half,
        verdict="likely",
    )


def _in_forward(looked: NanInspection, evidence: Evidence) -> Finding | None:
    if looked.predicted is not None:
        if all(map(is_finite, floats(looked.predicted))):
            return None
    elif not looked.problem and all(map(np.isfinite, looked.losses.values())):
        return None
    call = _origin(looked.calls)
    if call is None:
        return None
    output = next(sight_of(t) for t in call.outputs if not is_finite(t))
    seen = [sight_of(tensor) for tensor in call.inputs]
    most = max((s.most for s in seen), default=0.0)
    dtype = str(getattr(call.owner, "compute_dtype", None) or output.dtype)
    half = HALF in (dtype, output.dtype)
    weights = max((sight_of(value_of(v)).most for v in _weights(call)), default=0.0)
    text = f"{_title(call)} computes in {dtype}: max |input| {most:.6g}, output {output}"
    text += f"; max |weight| {weights:.6g}" if weights else ""
    is_cast = half and any(s.most > HALF_MOST and s.dtype != HALF for s in seen)
    own_code = not is_cast and any(call.encloses(other) for other in looked.calls)
    inside = " in its own code, between the layers that it calls" if own_code else ""
    why = f"Its inputs are finite and its outputs are not{inside}."
    if half and (output.inf or most > HALF_MOST):
        why += " float16 ends at 65,504."
    if is_cast:
        why += " Its input is beyond that when it is cast."
    fix = [words.DIVERGED] * (weights > LARGE) + [words.SCALE] * (most > LARGE)
    fix += [words.float32_layer(call.name)] * (half and not is_cast) + [words.BFLOAT16] * half
    fix += [] if fix and not own_code else [words.EPSILON]
    return finding(
        f"{_title(call)} is the first layer whose output is not finite.",
        why,
        [*evidence, (text, FORWARD)],
        [*fix, words.find(keras.backend.backend())] if own_code else fix,
        half=half,
    )


def _in_loss(
    model: Model, batch: Batch, looked: NanInspection, evidence: Evidence
) -> Finding | None:
    lost = [name for name, value in looked.losses.items() if not np.isfinite(value)]
    if is_finite(looked.loss) and not lost:
        return None
    _, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
    outputs = [(name, sight_of(t)) for name, t in named(looked.predicted, "output")]
    labels = [(name, sight_of(t)) for name, t in named(y, "y")]
    own = " of the model's own train_step" if looked.own_step else ""
    names = ", ".join(name for name in lost if name != "loss") or "the loss"
    proof = [(f"{name}: {seen}", LOSS) for name, seen in (*outputs, *labels)]
    value = f"{names}{own} is {_number(looked, lost)}"
    added = [tensor for tensor in looked.added if not is_finite(tensor)]
    if added:
        value += f"; {len(added)} of {len(looked.added)} losses of regularizers and add_loss are so"
    half = any(seen.dtype == HALF for _, seen in outputs)
    fix = [words.LOGITS] if _touches_a_limit(outputs) else []
    fix += [words.EPSILON]
    fix += [words.float32_layer("the last layer")] if half else []
    if any(seen.low < 0 for _, seen in labels):
        fix.append(words.NEGATIVE)
    if wrong := _label_out_of_range(looked.predicted, y):
        proof.append((wrong, LOSS))
        fix.insert(0, words.CLASSES)
    return finding(
        f"All layers give finite values, the loss does not: {names}{own}.",
        "The loss takes the logarithm of 0 or of a negative number, divides by 0, or exceeds the "
        "largest number.",
        [*evidence, (value, LOSS), *proof],
        fix,
        half=half,
    )


def _in_gradients(looked: NanInspection, evidence: Evidence) -> Finding | None:
    bad = [(v, g) for v, g in looked.gradients if g is not None and not is_finite(g)]
    if not bad:
        return None
    proof = [*evidence]
    variable, gradient = bad[-1]  # a model's last variables are the first in the backward pass
    call = _culprit(looked)
    if call is not None:
        owned = {id(v) for v in _weights(call)}
        variable, gradient = next(((v, g) for v, g in bad[::-1] if id(v) in owned), bad[-1])
        flows = [looked.flows[id(t)] for t in call.outputs if id(t) in looked.flows]
        most = max((sight_of(flow).most for flow in flows), default=0.0)
        inputs = " and ".join(str(sight_of(t)) for t in call.inputs)
        proof.append(
            (f"{_title(call)}: gradient of its output finite, max {most:.6g}; inputs {inputs}",
             BACKWARD)
        )  # fmt: skip
    text = f"gradient of {variable.path}: {sight_of(gradient)}; {len(bad)} of "
    text += f"{len(looked.gradients)} gradients are not finite"
    proof.append((text, BACKWARD))
    if call is None and looked.own_step:
        proof.append(("the train_step is the model's own: what flows between its layers in the "
                      "backward pass cannot be seen", BACKWARD))  # fmt: skip
    half = call is not None and getattr(call.owner, "compute_dtype", "") == HALF
    where = f"in {_title(call)}" if call is not None else f"on the way to {variable.path}"
    return finding(
        f"The loss is finite, its gradient is not: it is lost {where}; first in {variable.path}.",
        "The derivative of a root, a norm or a logarithm at 0 is infinite, and times 0 it is NaN.",
        proof,
        [
            *[words.BFLOAT16] * half,
            words.EPSILON,
            words.NO_MASK_OF_NAN,
            words.NO_CLIPPING,
        ],
        half=half,
    )


def _nowhere(looked: NanInspection, evidence: Evidence) -> Finding:
    checked = "inputs, labels, weights, every layer, the loss and the gradients are finite"
    if looked.problem:
        checked = f"inputs, labels and weights are finite; {looked.problem}"
    elif not looked.calls:
        checked += "; the train_step calls no Keras layer that could be looked into"
    source = "one train step on this batch, run operation by operation"
    return finding(
        "This batch and these weights do not show where the loss was lost.",
        "An update since then was too large, or the step differs when it is compiled.",
        [*evidence, (checked, source)],
        [words.DIVERGED, words.find(keras.backend.backend())],
        verdict="possible",
    )


def _origin(calls: list[Call]) -> Call | None:
    """Return the first innermost call that makes what is not finite, masks put last.

    Minus infinity is what masks are made of: where everything that takes it is finite again, or
    something else is wrong, it is not that.
    """
    made = [call for call in calls if call.ended >= 0 and not_finite_inside(call)]
    made = [call for call in made if not any(call.encloses(other) for other in made)]
    made = [call for call in made if not _is_healed(call, calls)] or made
    return min(made, key=lambda call: (_only_low(call), call.ended), default=None)


def _is_healed(call: Call, calls: list[Call]) -> bool:
    made = {id(tensor) for tensor in call.outputs}
    users = [user for user in calls if any(id(tensor) in made for tensor in user.inputs)]
    return bool(users) and all(is_finite(t) for user in users for t in user.outputs)


def _culprit(looked: NanInspection) -> Call | None:
    """Return the innermost last call that turns a finite gradient into one that is not."""
    bad = {id(v) for v, g in looked.gradients if g is not None and not is_finite(g)}

    def loses(call: Call) -> bool:
        flows = [looked.flows[id(t)] for t in call.outputs if id(t) in looked.flows]
        if call.ended < 0 or not flows or not all(map(is_finite, flows)):
            return False
        into = [looked.flows[id(t)] for t in call.inputs if id(t) in looked.flows]
        return not all(map(is_finite, into)) or any(id(v) in bad for v in _weights(call))

    found = [call for call in looked.calls if loses(call)]
    inner = [call for call in found if not any(call.encloses(other) for other in found)]
    return max(inner, key=lambda call: call.ended, default=None)


def _only_low(call: Call) -> bool:
    return all(sight_of(t).only_low for t in call.outputs if not is_finite(t))


def _weights(call: Call) -> list[Any]:
    return [v for v in getattr(call.owner, "trainable_variables", ()) if "float" in str(v.dtype)]


def _title(call: Call) -> str:
    return f"{call.name} ({type(call.owner).__name__})"


def _number(looked: NanInspection, lost: list[str]) -> float:
    if looked.loss is not None and not is_finite(looked.loss):
        return float(np.asarray(looked.loss).max())
    return looked.losses[lost[0]]


def _touches_a_limit(outputs: list[tuple[str, Sight]]) -> bool:
    """Return whether outputs look like probabilities at 0 or 1, whose logarithm is taken."""
    return any(s.low >= 0 and s.high <= 1 and (s.low == 0 or s.high == 1) for _, s in outputs)


def _label_out_of_range(predicted: Value, y: Tensor) -> str:
    """Say what is wrong with class numbers, where there are more than the model has outputs."""
    if not (tf.is_tensor(predicted) and tf.is_tensor(y) and y.dtype.is_integer):
        return ""
    classes = int(predicted.shape[-1] or 0)
    highest = int(tf.reduce_max(y)) if tf.size(y) else 0
    return f"a label is {highest}, the model has {classes} outputs" if highest >= classes else ""
