"""The input of a training by itself, as Keras reads it on JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import numpy as np

from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.base.keras_internals import data_adapter
from tfdyno.runtime.diagnose.jax_input import looked_at, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Value

SHORT = Limits(alone_s=0.2, stages_s=0.2)
X = np.arange(40, dtype="float32").reshape(20, 2)


class Rows(keras.utils.PyDataset):
    """Five batches of four rows."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, number: int) -> tuple[Value, Value]:
        return X[4 * number : 4 * number + 4], X[4 * number : 4 * number + 4, 0]


def test_a_pydataset_is_read_pass_by_pass() -> None:
    adapter = data_adapter(Rows())
    found, batch, why = looked_at(source_of(adapter, 0), adapter, SHORT)
    assert why == ""
    assert found
    assert (found.kind, found.workers, found.prefetches) == ("pydataset", 0, False)
    assert len(found.batch_s) >= 10
    assert found.batch_bytes == 4 * 2 * 4 + 4 * 4
    assert np.asarray(batch[0]).tolist() == X[:4].tolist()


def test_a_generator_goes_on_where_the_training_left_it() -> None:
    def batches() -> Iterator[tuple[Value, Value]]:
        for number in range(6):
            yield X[:4] + number, X[:4, 0]

    adapter = data_adapter(batches())
    found, batch, _ = looked_at(source_of(adapter, 0), adapter, SHORT)
    assert found
    assert found.kind == "generator"
    assert batch is not None


def test_what_fails_is_a_sentence() -> None:
    class Broken(Rows):
        def __getitem__(self, number: int) -> tuple[Value, Value]:
            if number:
                raise OSError("planted")
            return super().__getitem__(number)

    adapter = data_adapter(Broken())
    found, batch, why = looked_at(source_of(adapter, 0), adapter, SHORT)
    assert (found, batch) == (None, None)
    assert why == "The input could not be run by itself: planted."
