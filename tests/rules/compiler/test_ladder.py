from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.compiler import Fault, fault_in, next_step

if TYPE_CHECKING:
    from tfdyno.core.recipe.retreat import RetreatStep

TILE, GEMM = "Failed to compute symbolic tile", "Autotuning failed for HLO"


def fault(text: str) -> Fault:
    found = fault_in(text)
    assert found
    return found


def steps(text: str, own_flags: str = "", *, has_graph: bool = True) -> list[str]:
    """All steps in order, as each of them fails."""
    found: list[RetreatStep] = []
    ways = {"own_flags": own_flags, "has_graph": has_graph}
    while step := next_step(fault(text), text, tried=found, **ways):  # type: ignore[arg-type]
        found.append(step.step)
    return list(found)


def test_the_steps_go_from_triton_over_autotuning_to_graph() -> None:
    assert steps(TILE) == ["no_triton", "no_autotuning", "graph"]


def test_a_fault_of_the_autotuner_skips_what_cannot_help() -> None:
    assert steps(GEMM) == ["no_autotuning", "graph"]


def test_an_xla_older_than_the_card_goes_to_graph_at_once_and_ends_where_there_is_none() -> None:
    said = "LLVM ERROR: PTX version 8.5 does not support target 'sm_120'. Minimum is 8.7."
    assert steps(said) == ["graph"]
    assert steps(said, has_graph=False) == []


def test_there_is_no_graph_where_all_runs_by_xla() -> None:
    assert steps(TILE, has_graph=False) == ["no_triton", "no_autotuning"]


def test_a_flag_of_the_users_own_stays_whatever_it_says() -> None:
    assert steps(TILE, "--xla_gpu_enable_triton_gemm=true") == ["no_autotuning", "graph"]
    assert steps(TILE, "--xla_gpu_autotune_level=2") == ["no_triton", "graph"]


def test_a_step_tells_its_flag_and_the_upstream_threads() -> None:
    step = next_step(fault(TILE), TILE, tried=())
    assert step
    assert step.flags == ("--xla_gpu_enable_triton_gemm=false",)
    assert step.fault == "symbolic_tile"
    assert "jax-ml/jax#40237" in step.references
    unknown = next_step(fault("LLVM ERROR: no"), "LLVM ERROR: no", tried=())
    assert unknown
    assert (unknown.fault, unknown.said) == ("", "LLVM ERROR: no")
