"""What a child, or a record, says of the steps that it looked at, told in another language.

Both are English: a child knows no other language, and a record is read by everybody. Each sentence
is written here as it is made there, with a name for each figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.language import retold, say_later
from tfdyno.words.bench import told as bench
from tfdyno.words.train import notes as train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.recipe.retreat import Retreat

STAGES = (
    say_later("looking at the input and the step by themselves"),
    say_later("looking at the input by itself"),
    say_later("{count} steps, the process holds {held}"),
    say_later("fit {number}, {used} in use"),
    say_later("reading {name}"),
    say_later("splitting {count} events into steps"),
)
"""Stages of a child, without a stop; those of a bench and of a training come too."""
NOTES = (
    # of the training
    say_later("The training ended by itself after {count} steps, before warm-up was over"),
    say_later("The training ended by itself after {count} steps"),
    say_later("It was stopped after {count} steps: what was seen until then is told"),
    say_later("It failed after {count} steps: what was seen until then is told"),
    say_later("A callback asked for the end after {count} steps; the training was kept going"),
    say_later("Validation was cut short after {seconds} s: it takes at least so long"),
    say_later("Validation was cut short: its time is that of the part that was seen"),
    say_later("One call of fit was looked at: the script is not seen to call it again, and what "
              "stays from one fit to the next was not looked at"),
    say_later("The script calls fit again, but only {count} ran: too few to tell what stays from "
              "one to the next"),
    say_later("The first of {count} fits was looked at step by step; the others ran for "
              "{seconds} s of steps each at most"),
    # of its input, and of the step without it
    say_later("The data has ended"),
    say_later("The generator has ended: it was not run by itself"),
    say_later("The input could not be run by itself: {error}"),
    say_later("The step of several workers was not run without its data"),
    say_later("The step reads its data itself: it was not run without"),
    say_later("The step could not be repeated: {error}"),
    say_later("The step could not be looked into: {error}"),
    # of a profile
    say_later("{count} runs are in the folder: the newest, {name}, was read"),
    say_later("The run has profiles of {count} hosts: that of {name} was read"),
    say_later("The profiler said: {text}"),
    say_later("The profile has no events of the host: waiting for input cannot be told from other "
              "pauses of the GPU"),
    say_later("The profile holds one step only"),
    say_later("The profile has no step markers: each call of {name} counts as one step (with "
              "steps_per_execution above 1 it is several)"),
    say_later("The profile has no step markers: steps are derived from the pattern of operations "
              "that repeats, each from one start of the same operation ({name}) to the next; "
              "{share} of all operations repeat from step to step"),
    say_later("{count} of {all} steps took more than three times the median (ends of epochs, "
              "disturbances): left out"),
    say_later("{count} GPUs: the times are those of the busiest"),
    say_later("A profile does not tell the batch size, memory and the CPUs of its machine"),
)  # fmt: skip
"""Notes of a look, without the stop at their end; those of a bench and of a training come too."""
FACTS = (
    say_later("argument {path}: {change}"),
    say_later("a new tf.function for each call"),
    say_later("a new dataset for each call"),
    say_later("a new iterator over several devices for each call"),
    say_later("objects made at {place} and kept by something, {count} more with each step"),
    say_later("{count} live {what}, {more} more with each step; what stays is made at {place}"),
    say_later("{count} live {what}, {more} more with each step"),
    say_later("{kind} of {count} tensors held by {place} ({name})"),
    say_later("{kind} of {count} entries held by {place} ({name})"),
    say_later("{kind} of {size} MB held by {place} ({name})"),
    say_later("{what} held by {place} ({name})"),
    say_later("{what} held as {name}"),
    say_later("{what}: {share} of the step"),
    say_later("after warm-up"),
)
"""What was seen of one thing."""


def stage_words(line: str) -> str:
    """Return a stage of a child in the language of the answer; another one as it is."""
    return retold(line, (*train.STAGES, *bench.STAGES, *STAGES))


def fact_words(text: str) -> str:
    """Return what was seen of one thing in the language of the answer."""
    return retold(text, FACTS)


def note_words(note: str, retreats: Sequence[Retreat] = ()) -> str:
    """Return a note in the language of the answer as far as it is known.

    Args:
        note: As it was made.
        retreats: The steps back that it may tell of.
    """
    return train.note_words(note, retreats, (*NOTES, *bench.NOTES))
