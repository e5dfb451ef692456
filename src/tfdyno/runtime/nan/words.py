"""What is said of a loss that is lost: why, and what to do, by the place where it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.doctor.finding import Evidence, Finding, FixStep, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF = "float16"
HALF_MOST = 65504.0
"""The largest number of float16."""
LARGE = 1e4
"""Weights or activations beyond it are the mark of training that diverges."""
LINK = "https://www.tensorflow.org/guide/mixed_precision"

DIVERGED = FixStep(
    text="Lower the learning rate, or limit the gradients with --set clip_norm=1.0; then resume "
    "from the last good checkpoint with --resume."
)
ALONE = FixStep(
    text="Train it with tfdyno train as one process, on JAX on one device: it repeats the steps "
    "and names the batch and the first layer, or the value in the data."
)
EPSILON = FixStep(
    text="Where it takes a logarithm or a root, or divides, keep the argument away from 0 with an "
    "epsilon (1e-7 in float32, 1e-4 in float16)."
)
BFLOAT16 = FixStep(
    text="On a card of compute capability 8.0 or later train with --set precision=mixed_bfloat16: "
    "it has the range of float32 and needs no loss scaling.",
    command='keras.mixed_precision.set_global_policy("mixed_bfloat16")',
)
SCALE = FixStep(
    text="Scale the inputs to about 1: a Normalization layer at the beginning, or x / 255."
)
LOGITS = FixStep(
    text="Let the model return logits (no softmax or sigmoid at the end) and the loss take "
    "from_logits=True."
)
NO_MASK_OF_NAN = FixStep(
    text="A where() does not stop it: the gradient of the branch that is not taken is still "
    "computed. Make the argument safe before the operation."
)
NO_CLIPPING = FixStep(text="Clipping does not mend it: the norm of such a gradient is NaN.")
NEGATIVE = FixStep(text="Labels below 0 have no logarithm: choose another loss, or shift them.")
CLASSES = FixStep(text="Give the last layer one unit per class.")
OPTIMIZER_EPSILON = FixStep(text="Give the optimizer its usual epsilon, 1e-7 or more.")
_CHECKS = {
    "tensorflow": "tf.debugging.enable_check_numerics()",
    "jax": 'jax.config.update("jax_debug_nans", True)',
}


def find(backend: str) -> FixStep:
    """Let the backend itself stop at the operation."""
    return FixStep(text="Find the operation inside it.", command=_CHECKS.get(backend, ""))


def float32_layer(name: str) -> FixStep:
    """Keep one layer out of float16."""
    return FixStep(text=f'Keep {name} in float32: give it dtype="float32".')


def cleaning(where: str) -> FixStep:
    """Mend the data."""
    return FixStep(
        text=f"Repair the data, or leave such samples out: {where}.",
        command="dataset = dataset.unbatch().filter(lambda x, y: "
        "tf.reduce_all(tf.math.is_finite(x)) & tf.reduce_all(tf.math.is_finite(y)))",
    )


def finding(
    summary: str,
    why: str,
    evidence: Sequence[tuple[str, str]],
    fix: Sequence[FixStep],
    *,
    half: bool = False,
    verdict: Verdict = "proven",
) -> Finding:
    """Make a finding of the doctor's causes: ``num.mixed_nan`` in float16, else ``num.nan``.

    Args:
        summary: Where it began.
        why: How that makes the loss NaN.
        evidence: Texts with their sources.
        fix: What to do, the likeliest first.
        half: Whether the small range of float16 made it.
        verdict: ``proven`` where the place was seen.
    """
    return Finding(
        cause="num.mixed_nan" if half else "num.nan",
        verdict=verdict,
        severity="error",
        summary=summary,
        why=why,
        evidence=tuple(Evidence(text=text, source=source) for text, source in evidence if text),
        fix=tuple(fix),
        link=LINK if half else "",
    )
