"""What a child says of a training, and what a record of one holds, told in another language.

Both are English: a child knows no other language, and a record is read by everybody. Each sentence
is written here as it is made there, with a name for each figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.recipe.retreat import told_of
from tfdyno.words.base.holders import holders_words
from tfdyno.words.base.language import retold, retold_sentence, say_later
from tfdyno.words.recipe.retreats import retreats_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.recipe.retreat import Retreat

STAGES = (
    say_later("importing TensorFlow"), say_later("importing JAX and Keras"),
    say_later("building {workload}"),
    say_later("reading the data of epoch {epoch} again: {why}"),
    say_later("reading the data of epoch {epoch} again"),
    say_later("looking for where the number was lost"),
)  # fmt: skip
"""Stages of a child, without a stop."""
UNUSED_GPUS = (
    say_later("JAX computes on the CPU, though this machine has a GPU: {remedy}"),
    say_later("JAX computes on the CPU, though this machine has {count} GPUs: {remedy}"),
)
NOTES = (
    *UNUSED_GPUS,
    # of this process
    say_later("It goes on with another mesh or layout than before"),
    say_later("{workload} has changed since the run was started"),
    say_later("{file} could not be written: {error}"),
    say_later("{cloud} takes this machine away at {time} ({action})"),
    say_later("{cloud} takes this machine away in about {seconds} s ({action})"),
    say_later("The first step took {seconds} with compiling, {count} were kept from before; the "
              "next start takes the programs from the cache"),
    say_later("The first step took {seconds} with compiling; the next start takes the programs "
              "from the cache"),
    say_later("The first step took {seconds}: its compiled programs were kept from before; it took "
              "{earlier} when they were compiled"),
    say_later("The first step took {seconds}: its compiled programs were kept from before"),
    say_later("Compiled programs are not kept: {why}"),
    # of the script
    say_later("It was stopped before its first step or after its last"),
    say_later("The script was stopped after fit {number}; what is trained is not trained again"),
    say_later("Fit {number} of {count}: {epochs} epoch, loss {loss}, in {folder}"),
    say_later("Fit {number} of {count}: {epochs} epochs, loss {loss}, in {folder}"),
    say_later("Fit {number} of {count}: {epochs} epoch, loss {loss}"),
    say_later("Fit {number} of {count}: {epochs} epochs, loss {loss}"),
    say_later("{count} images of {data} in an epoch"),
    # of the data
    say_later("Keras gives arrays the same order in each epoch: a seed is set"),
    say_later("The last batch() of the dataset makes batches of another size"),
    say_later("The dataset's batches are cut anew (rebatch), which costs time on the host"),
    say_later("{stage} draws random numbers on several threads: a seed does not repeat them; use "
              "the tf.random.stateless_ functions"),
    say_later("{stage} gives its elements in the order they get ready (deterministic=False): a "
              "seed does not repeat it"),
    say_later("{layer} runs in the input pipeline on the CPU"),
    # of the recipe
    say_later("deterministic needs a seed: 0"),
    say_later("The code calls {name}; {setting} of the recipe holds"),
    say_later("The code makes a {kind}; strategy = {name} of the recipe holds"),
    say_later("run_eagerly is off: execution = {name} holds"),
    say_later("run_functions_eagerly is off: execution = {name} holds"),
    say_later("The optimizer's own clipping is off: clip_norm of the recipe holds"),
    say_later("float8: Dense and EinsumDense layers are quantized by Keras, no others"),
    say_later("remat recomputes {names} ({what} {before} to {after}, {more} more arithmetic, "
              "predicted)"),
    say_later("remat recomputes {names} ({more} more arithmetic, predicted)"),
    say_later("Nothing is recomputed: no cut of the model lowers what activations take"),
    say_later("Nothing is recomputed: the activations take {size}"),
    say_later("Recomputing saves nothing here, as predicted: one part makes the peak"),
    say_later("Each step waits for Python: TPUs want steps_per_execution = 20 or more"),
    # of checkpoints and of the model
    say_later("The last good checkpoint is {path}"),
    say_later("{name} is damaged and left out: {why}"),
    say_later("Old checkpoints in {folder} were not removed: {error}"),
    say_later("{callback} starts anew: the checkpoint has no state of it"),
    say_later("{name} continues at {value}; the script gives {given}"),
    say_later("{callback} of the checkpoint is not among the callbacks any more"),
    say_later("The model was not saved: {error}"),
    say_later("Models in it, which Keras loads by themselves: {files}"),
)  # fmt: skip
"""Notes of an answer, without the stop at their end."""


def stage_words(line: str) -> str:
    """Return a stage of a child in the language of the answer; another one as it is."""
    return retold(line, STAGES)


def note_words(note: str, retreats: Sequence[Retreat] = (), more: Iterable[str] = ()) -> str:
    """Return a note as a sentence, in the language of the answer as far as it is known.

    Args:
        note: As it was written down; it may be said in that language already.
        retreats: The steps back that it may tell of.
        more: Sentences that are known beside those of a training.
    """
    if retreats and note == told_of(retreats):
        return retreats_words(retreats)
    told = retold_sentence(note, (*more, *NOTES))
    told = told if told != note else holders_words(note)
    return told if told.endswith((".", "。")) else f"{told}."


def notes_words(notes: Iterable[str], retreats: Sequence[Retreat] = ()) -> str:
    """Return such notes as one paragraph."""
    return paragraph(note_words(note, retreats) for note in notes)


def paragraph(sentences: Iterable[str]) -> str:
    """Join sentences of two languages: a blank follows those that end as English ones do."""
    return "".join(f"{one} " if one.endswith(".") else one for one in sentences).rstrip()
