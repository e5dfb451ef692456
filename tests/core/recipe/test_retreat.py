from __future__ import annotations

import json

import pytest

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import (
    FIRST_STEP,
    FIRST_STEP_XLA,
    Retreat,
    as_run,
    flags_of,
    is_compiling,
    told_of,
)

TRITON = Retreat(
    step="no_triton", words="without Triton's products", flags=("--xla_a=false",),
    title="no tile", references=("jax-ml/jax#40237",),
)  # fmt: skip
GRAPH = Retreat(step="graph", words="in graph execution", said="LLVM ERROR: no")


def test_only_the_last_step_changes_the_recipe() -> None:
    asked = Recipe(execution="xla", batch_size=8)
    assert as_run(asked, [TRITON]) == asked
    assert as_run(asked, [TRITON, GRAPH]) == Recipe(execution="graph", batch_size=8)
    assert flags_of([TRITON, GRAPH]) == ("--xla_a=false",)


def test_one_sentence_tells_the_fault_its_thread_and_the_step() -> None:
    assert told_of([]) == ""
    assert told_of([TRITON]) == (
        "XLA failed to compile it: no tile (jax-ml/jax#40237); it ran without Triton's products "
        "(XLA_FLAGS --xla_a=false)."
    )
    assert told_of([TRITON, GRAPH]) == (
        "XLA failed to compile it: no tile (jax-ml/jax#40237), then LLVM ERROR: no; it ran in "
        "graph execution, as it failed without Triton's products, too."
    )


def test_a_crash_that_left_no_words_is_called_one() -> None:
    bare = Retreat(step="graph", words="in graph execution")
    assert "the process crashed while XLA compiled its first step" in told_of([bare])


@pytest.mark.parametrize(
    ("said", "compiles"),
    [
        (FIRST_STEP_XLA, True),
        (FIRST_STEP, False),
        (json.dumps({"event": "begin", "xla": True}), True),
        (json.dumps({"event": "begin", "xla": False}), False),
        (json.dumps({"event": "steps", "xla": True}), False),
        ("", False),
        ("[1]", False),
    ],
)
def test_xla_compiles_before_the_first_step_and_not_after(said: str, compiles: bool) -> None:
    assert is_compiling(said) is compiles
