"""What a child says of a loss that is lost, told in another language: the place and what to do."""

from __future__ import annotations

from tfdyno.words.base.language import retold, say_later

SUMMARIES = (
    say_later("The {what} hold values that are not finite: {name}, {place}."),
    say_later("Before this batch {what} were not finite already, the first is {name}."),
    say_later("{layer} is the first layer whose output is not finite."),
    say_later("All layers give finite values, the loss does not: {names}."),
    say_later("The loss is finite, its gradient is not: it is lost in {layer}; first in {name}."),
    say_later("The loss is finite, its gradient is not: it is lost on the way to {where}; first in "
              "{name}."),
    say_later("This batch and these weights do not show where the loss was lost."),
    say_later("The gradients are finite, the update is not: {name} is lost in it."),
    say_later("{seen}, and repeating the steps did not show where it began."),
    say_later("{seen}, and the steps cannot be repeated to show where it began."),
)  # fmt: skip
FIXES = (
    say_later("Lower the learning rate, or limit the gradients with --set clip_norm=1.0; then "
              "resume from the last good checkpoint with --resume."),
    say_later("Train it with tfdyno train as one process, on JAX on one device: it repeats the "
              "steps and names the batch and the first layer, or the value in the data."),
    say_later("Where it takes a logarithm or a root, or divides, keep the argument away from 0 "
              "with an epsilon (1e-7 in float32, 1e-4 in float16)."),
    say_later("On a card of compute capability 8.0 or later train with --set "
              "precision=mixed_bfloat16: it has the range of float32 and needs no loss scaling."),
    say_later("Scale the inputs to about 1: a Normalization layer at the beginning, or x / 255."),
    say_later("Let the model return logits (no softmax or sigmoid at the end) and the loss take "
              "from_logits=True."),
    say_later("A where() does not stop it: the gradient of the branch that is not taken is still "
              "computed. Make the argument safe before the operation."),
    say_later("Clipping does not mend it: the norm of such a gradient is NaN."),
    say_later("Labels below 0 have no logarithm: choose another loss, or shift them."),
    say_later("Give the last layer one unit per class."),
    say_later("Give the optimizer its usual epsilon, 1e-7 or more."),
    say_later("Find the operation inside it."),
    say_later("Keep {layer} in float32: give it dtype=\"float32\"."),
    say_later("Repair the data, or leave such samples out: {place}."),
)  # fmt: skip


def summary_words(summary: str) -> str:
    """Return where it began, in the language of the answer."""
    return retold(summary, SUMMARIES)


def fix_words(text: str) -> str:
    """Return one thing to do, in the language of the answer."""
    return retold(text, FIXES)
