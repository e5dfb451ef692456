"""``TPUStrategy`` of a recipe. No TPU was there to try it on."""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

TABLE = Path(__file__).parents[1] / "tables" / "tensorflow_tpu.csv"
REMEDY = "start it on a machine with TPUs, as tfdyno launch --on vertex --with tpu=v5e-8 does"


def tpu_strategy() -> Value:
    """Return the strategy of all TPUs of this machine, which are reset for it.

    Raises:
        UsageError: There is none, or this TensorFlow is not built for them.
    """
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        why = why_none(tf.__version__) or str(error).partition("\n")[0][:200]
        raise UsageError("TensorFlow sees no TPU here", why=why, remedy=REMEDY) from None
    return tf.distribute.TPUStrategy(resolver)


@functools.cache
def releases() -> tuple[str, ...]:
    """List TensorFlow releases that were built for TPUs, as ``2.20``; the last at the end."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(row["tensorflow"] for row in csv.DictReader(lines, strict=True))


def why_none(version: str) -> str:
    """Say why a TensorFlow of this version sees no TPU, as far as the version tells."""
    release = ".".join(version.split(".")[:2])
    if release in releases():
        return ""
    return f"TensorFlow {release} is not built for TPUs; {releases()[-1]} is the last that was"


def tpu_notes(steps_per_execution: int, *, is_always_full: bool) -> list[str]:
    """Return what slows a training on TPUs down, in sentences.

    Args:
        steps_per_execution: Of the model.
        is_always_full: Whether all batches have the same number of samples.
    """
    notes = []
    if steps_per_execution == 1:
        notes.append("Each step waits for Python: TPUs want steps_per_execution = 20 or more.")
    if not is_always_full:
        notes.append(
            "Batches may differ in size, for which TPUs compile again: "
            "batch the data with drop_remainder=True."
        )
    return notes
