"""runtime/train_jax/place: what JAX would run on is told as a run on it tells it."""

from __future__ import annotations

import pytest
from tests.runtime.jaxes import variables

from tfdyno.core.messages.bench import PLACE_ON_JAX
from tfdyno.core.messages.child import Nothing
from tfdyno.jobs.child.worker import run_child

pytestmark = pytest.mark.tf


def test_the_place_has_jax_and_the_tensorflow_that_reads_its_data() -> None:
    import importlib.metadata

    found = run_child(PLACE_ON_JAX, Nothing(), timeout_s=300, env=variables(), doing="looking")
    assert found["jax"] == importlib.metadata.version("jax")
    assert found["tensorflow"].split(".")[0] == "2"  # a bench on JAX has it too, and tells it
    assert found["device"] == "cpu"
