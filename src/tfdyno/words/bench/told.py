"""What a bench is told in English: stages of its child, and notes that a record keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.language import retold, say_later
from tfdyno.words.train import notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.recipe.retreat import Retreat

STAGES = (
    say_later("importing TensorFlow"),
    say_later("importing JAX and Keras"),
    say_later("building {workload}"),
    say_later("first step (compiling)"),
    say_later("first step (compiling with XLA)"),
    say_later("measuring: {count} steps, {seconds} s"),
    say_later("measuring"),
    say_later("epoch {number}: {metrics}, {seconds} s"),
    say_later("{count} different requests"),
)
"""Stages of a child, without a stop."""
NOTES = (
    say_later("{title} brings no data: one random batch again and again"),
    say_later("What predict returns is not kept"),
    say_later("A loop of train_on_batch, timed in place"),
    say_later("A loop of the script's own, timed in place: its input is part of it"),
    say_later("The script's loop ended after {count} steps"),
    say_later("A step by itself, on random tensors"),
    say_later("The loss is not a number: training diverged"),
    say_later("Zeros stand for keras.datasets.{name}"),
    say_later("Left out of fit: {names}"),
    say_later("Arrays are read in their order, so that both backends get the same batches"),
    say_later("The code calls {function}; one device is measured"),
    say_later("Left out of the script: {names}"),
    say_later("The model is not compiled: assumed SGD with momentum 0.9 and {loss}"),
    say_later("Assumed SGD with momentum 0.9 and {loss}"),
    say_later("The code sets the policy {policy}; --precision {precision} holds"),
    say_later("Epochs are short: {count} images of {data}"),
    # of the input
    say_later("prefetch: as many batches as TensorFlow chooses are made ready ahead"),
    say_later("prefetch: {count} batches are made ready ahead"),
    say_later("shuffle_buffer changes nothing: Keras shuffles arrays as a whole"),
    say_later("shuffle_buffer changes nothing: the pipeline does not shuffle"),
    say_later("shuffle_buffer: shuffle draws from {count} elements (it had {before})"),
    say_later("parallel_calls: as many elements as TensorFlow chooses at once in {stages}"),
    say_later("parallel_calls: {count} elements at once in {stages}"),
    say_later("parallel_calls changes nothing: the pipeline has no map and no interleave"),
    say_later("{stage} still works on one element at a time: it draws random numbers ({names}), "
              "which a seed would not repeat; use the tf.random.stateless_ functions"),
    say_later("{stage} still works on one element at a time: each element changes what the next "
              "one meets ({names})"),
    say_later("{stage} runs Python code on several threads: if it draws random numbers, a seed "
              "does not repeat them"),
    say_later("cache changes nothing: the pipeline has one of its own"),
    say_later("cache changes nothing: the data are in memory already"),
    say_later("cache stands after {stage}, {size} of memory"),
    say_later("cache stands after {stage}"),
    say_later("cache is of use only if {stage} takes all that is in it"),
    say_later("{variable} names a cache of compiled programs: first steps may be without "
              "compiling"),
)  # fmt: skip
"""Notes of a measurement that a training has not, without the stop at their end."""

FAULTS = (
    say_later("another process listens at the port than at the start ({was}; now {now})"),
    say_later("the model changed from version {was} to {now}"),
    say_later("the model's inputs or outputs changed"),
    say_later("answers came from different servers: {servers}"),
    say_later("the server does not answer any more: {why}"),
)
"""Why a stretch of a load test counts for nothing, without a stop."""


def note_words(note: str, retreats: Sequence[Retreat] = ()) -> str:
    """Write a note as a sentence.

    Args:
        note: As it was written down.
        retreats: The steps back that it may tell of.
    """
    return notes.note_words(note, retreats, NOTES)


def stage_words(stage: str) -> str:
    """Return a stage of a run in the language of the answer."""
    return retold(stage, STAGES)


def fault_words(fault: str) -> str:
    """Return a fault of a load test in the language of the answer."""
    return retold(fault, FAULTS)
