"""What a study of a tuning keeps in English, told in another language.

A study is read again by whoever goes on with it, and so are its measurements: each sentence is
written here as it is made there, with a name for each figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.recipe.retreat import told_of
from tfdyno.words.base.language import ENGLISH, retold, retold_sentence, say, say_later, spoken
from tfdyno.words.recipe.retreats import retreats_words
from tfdyno.words.train.notes import UNUSED_GPUS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.train.tuning import Trial

UNCOMPARED = (
    say_later("{workload} brings no data"),
    say_later("{workload} is a single step, which nothing is trained with"),
    say_later("the start does not fit, so that there is nothing to compare with"),
    say_later("{workload} trains on TensorFlow alone"),
)
"""Why losses were not compared, as half a sentence."""
CLAUSES = (
    say_later("the interval of {low}–{high} leaves 1 out and the effect is over 1 %"),
    say_later("the interval of {low}–{high} holds 1"),
    say_later("the effect of {change} % is not over 1 %"),
    say_later("the machine's own speed, timed beside the steps, is taken out"),
    say_later("it is wider because the machine's own speed changed by {change} %"),
    say_later("samples per second compare, as the batches differ ({first} and {second})"),
)
"""Why one recipe is not faster than the other, as clauses."""
REASONS = (
    # of a proof
    say_later("It is faster, and the losses agree"),
    say_later("It is faster, but the losses do not agree"),
    say_later("It is faster. An update of the weights takes other samples than before: what is "
              "learned was not compared, and the learning rate may have to change with it"),
    say_later("It is faster, but its losses could not be compared: {error}"),
    say_later("It could not be measured against the start: {error}"),
    # of a trial
    say_later("It is the recipe of trial {number}"),
    say_later("A batch of {batch} ran out of memory with the same settings (trial {number})"),
    say_later("{name}={value} made trial {number} fail"),
    say_later("The estimate says {need} of memory at least, and there is {limit}"),
    say_later("The line through other trials says {need} of memory at least, and there is {limit} "
              "({sure})"),
    say_later("The estimate says {rate} samples/s at most, the best has {best} at least ({sure} "
              "each)"),
    say_later("The line through other trials says {rate} samples/s at most, the best has {best} at "
              "least ({sure} each)"),
    say_later("After {done} of {count} runs it is {slower} slower than trial {number}, surely "
              "({sure})"),
    say_later("It was surely slower"),
    say_later("Its optimistic end is below the pessimistic end of the best"),
)  # fmt: skip
"""Why a trial was not run, or is the answer or not; without the stop at their end."""
NOTES = (
    say_later("There is no estimate for a CPU: what is expected of a trial comes from lines "
              "through the trials of this study (time = fixed + per sample x batch), where there "
              "are enough of them"),
    say_later("There is no estimate for {card}: it is not in the catalogue"),
    say_later("Only samples per second are tuned, not what is learned: a trial that changes the "
              "batch of an update is marked"),
    say_later("Nothing was measured: these are estimates, and on the card itself the trials "
              "decide. They know nothing of the input and of several steps in one execution"),
    say_later("Execution and precision are not tuned: {error}"),
    say_later("execution is not tuned: JAX compiles every step with XLA"),
    say_later("Settings of the input are not tuned: tf.data does not read this data"),
    say_later("Settings of the input are not listed: on JAX they go with data of tf.data alone, "
              "and what reads the data is known of a run"),
    say_later("There is no estimate: the script runs JAX without a compiled step, and the estimate "
              "is of a compiled one"),
    say_later("Trials ran on one of {count} GPUs. On JAX train shares each batch among all that "
              "it sees: visible_devices = 0 shows it one"),
    *UNUSED_GPUS,
    say_later("No estimate for a batch of {batch}: {error}"),
    say_later("No estimate in {precision}: {error}"),
    say_later("What is expected uses {what}"),
    say_later("Node {node} is left out: {why}"),
    say_later("Node {node} was lost: {error}"),
)  # fmt: skip
"""Notes of an answer, without the stop at their end."""
DEVICES = (say_later("{count} CPUs ({name})"), say_later("{count} CPU ({name})"))
COMPARED = (
    say_later("{field} differs: {left} and {right}."),
    say_later("{name} has {count} of {all} runs with a steady state; a comparison needs {least}."),
    say_later("XLA failed to compile {name} ({cause}), which ran in graph execution as the other "
              "side did: both are the same run."),
)  # fmt: skip
"""Why two measurements do not compare, as ``model.measure.comparison`` says it."""
_NOT_FASTER, _NO_LOSSES = "It is not faster: ", "It is faster. Losses were not compared: "
_NOT_THE_ANSWER = " is not the answer. "


def reason_words(reason: str) -> str:
    """Return why a trial is the answer or not, in the language of the answer."""
    if spoken() == ENGLISH:
        return reason
    plain = reason.rstrip(".")
    if plain.startswith(_NOT_FASTER):
        clauses = plain.removeprefix(_NOT_FASTER).split("; ")
        why = say("; ").join(retold(one, CLAUSES) for one in clauses)
        return say("It is not faster: {why}.", why=why)
    if plain.startswith(_NO_LOSSES):
        why = uncompared_words(plain.removeprefix(_NO_LOSSES))
        return say("It is faster. Losses were not compared: {why}.", why=why)
    told = retold(reason, COMPARED)
    return told if told != reason else retold_sentence(reason, REASONS)


def uncompared_words(why: str) -> str:
    """Return why losses were not compared, as half a sentence."""
    return retold(why, UNCOMPARED)


def note_words(note: str, trials: Iterable[Trial]) -> str:
    """Return a note in the language of the answer, as far as it is known.

    Args:
        note: As the study has it.
        trials: Of the study: the steps back of one may be what is told.
    """
    if spoken() == ENGLISH:
        return note
    trial, is_other, reason = note.partition(_NOT_THE_ANSWER)
    if is_other:
        number = trial.removeprefix("Trial ")
        return say("Trial {number} is not the answer. {reason}",
                   number=number, reason=reason_words(reason))  # fmt: skip
    for one in trials:
        if one.retreats and note == f"Trial {one.number}: {told_of(one.retreats)}":
            return say("Trial {number}: {what}",
                       number=one.number, what=retreats_words(one.retreats))  # fmt: skip
    return retold_sentence(note, NOTES)


def device_name_words(name: str) -> str:
    """Return the name of the device, where it is one of CPUs in the language of the answer."""
    return retold(name, DEVICES)
