"""words/bench/measurement: units, precision, and what is unknown is not told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.measure.test_measurement_document import SUMMARY
from tests.measurements import ENVIRONMENT, TASK, measurement

from tfdyno.core.measure.measurement import Card, Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.words.bench.measurement import (
    batch_words,
    device_words,
    energy_words,
    environment_words,
    peak_words,
    rate_words,
    recipe_words,
    seconds_words,
    step_words,
    task_words,
    unit_of,
)


@pytest.mark.parametrize(
    ("median_s", "interval_s", "words"),
    [
        (0.0521, (0.0518, 0.0526), ("52.1 ms", "51.8–52.6")),
        (0.0521, (0.05209, 0.05214), ("52.10 ms", "52.09–52.14")),
        (0.0521, (0.0521, 0.0521), ("52.100 ms", "52.100")),
        (0.000823, (0.0008, 0.00091), ("823 µs", "800–910")),
        (1.5, (1.25, 1.75), ("1.50 s", "1.25–1.75")),
        (0.9996, (0.999, 1.002), ("1,000 ms", "999–1,002")),
    ],
)
def test_a_step_has_the_digits_that_tell_its_bounds_apart(
    median_s: float, interval_s: tuple[float, float], words: tuple[str, str]
) -> None:
    assert step_words(median_s, interval_s) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.412, "412 ms"), (8.2, "8.20 s"), (125.0, "2 min 5 s")]
)
def test_seconds_read_in_their_unit(seconds: float, words: str) -> None:
    assert seconds_words(seconds) == words


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (("float32[32,32,3]",), "614 images/s"),
        (("int32[128]",), "614 samples/s"),
        (("float32[24,32,12]",), "614 samples/s"),
        ((), "614 samples/s"),
    ],
)
def test_pictures_are_counted_as_images(inputs: tuple[str, ...], words: str) -> None:
    assert rate_words(replace(TASK, inputs=inputs), 614.2) == words


def test_the_device_is_the_cards_or_the_cpus() -> None:
    l4, h100 = Card(name="NVIDIA L4"), Card(name="NVIDIA H100")
    on = replace(ENVIRONMENT, device="gpu")
    assert device_words(ENVIRONMENT) == "2 CPUs (a CPU)"
    assert device_words(replace(on, cards=(h100,))) == "NVIDIA H100"
    assert device_words(replace(on, cards=(l4, l4, h100))) == "2 x NVIDIA L4 and NVIDIA H100"


def test_versions_of_the_card_are_told_where_there_is_one_and_nothing_unknown() -> None:
    known = replace(ENVIRONMENT, cuda="12.5.1", cudnn="9")
    assert "CUDA" not in environment_words(known)
    on_card = replace(known, device="gpu", cards=(Card(name="NVIDIA L4"),), container="docker")
    assert environment_words(on_card) == (
        "CUDA 12.5.1, cuDNN 9, TensorFlow 2.21.0, Keras 3.15.1, Python 3.11.7, tfdyno 0.1.0; "
        "Linux 6.1 on bench, in docker; 2 CPUs (a CPU), 8 GiB of memory"
    )


def test_only_settings_that_change_something_are_told() -> None:
    assert recipe_words(Recipe()) == ""
    assert recipe_words(Recipe(batch_size=8, seed=0)) == "batch_size=8, seed=0"


def test_the_task_says_how_and_on_which_data_it_ran() -> None:
    one = measurement([[0.1]], protocol=Protocol(data="synthetic"))
    assert task_words(one) == (
        "training in float32, graph without XLA, 1,000 parameters, inputs float32[32,32,3], one "
        "made-up batch again and again through tf.data"
    )


def test_memory_names_its_owner_and_energy_what_was_measured() -> None:
    assert peak_words(SUMMARY.peak_memory_bytes, "process") == (
        "1 GiB at most (the process, Python and TensorFlow included)"
    )
    assert energy_words(SUMMARY) == "GPU busy 70% of the time"
    told = replace(SUMMARY, power_w=312.4, energy_j_per_step=16.3, utilisation_ratio=None)
    assert energy_words(told) == "312 W, 16.3 J a step"


def test_where_the_batch_is_unknown_steps_are_counted() -> None:
    task = replace(TASK, batch_size=0)
    assert (unit_of(task), batch_words(task)) == ("steps", "an unknown batch")
    assert batch_words(TASK) == "batch 64"


def test_jax_is_named_where_it_computed() -> None:
    known = replace(ENVIRONMENT, jax="0.10.2")
    assert environment_words(known).startswith("JAX 0.10.2, TensorFlow 2.21.0, Keras 3.15.1, ")
    assert "JAX" not in environment_words(ENVIRONMENT)
    on_jax = measurement([], task=replace(TASK, backend="jax", execution="xla"))
    assert task_words(on_jax).startswith("training in float32, Keras on JAX, compiled by XLA, ")
    assert peak_words(2.0**30, "allocator", "jax") == (
        "1 GiB at most (JAX's allocator on the GPU, compiling included)"
    )
    assert peak_words(2.0**30, "process", "jax") == peak_words(2.0**30, "process")
