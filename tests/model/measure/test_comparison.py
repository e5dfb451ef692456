from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.measurements import ENVIRONMENT, TASK, measurement, run

from tfdyno.core.measure.measurement import Card, Measurement, Protocol
from tfdyno.core.recipe.recipe import Execution, Recipe
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.model.measure.comparison import compare

if TYPE_CHECKING:
    from collections.abc import Sequence

A100 = Card(name="NVIDIA A100-SXM4-80GB", slug="a100-sxm4-80gb")


def of(levels_s: Sequence[float], **changes: object) -> Measurement:
    """A measurement whose runs have these medians."""
    return measurement([[level] * 3 for level in levels_s], **changes)


def beside(seconds_s: float) -> dict[str, Any]:
    """The fields of a run whose machine took so long for the small computation."""
    return {"beside_s": (seconds_s,), "beside_places": (1,)}


def session(draw: random.Random, *, runs: int = 5, noise: float, slower: float = 1.0,
            alternate: bool = True) -> tuple[Measurement, Measurement]:  # fmt: skip
    """Two simulated measurements of ``runs`` runs each; B takes ``slower`` times as long."""
    order = ("ABBA" * runs)[: 2 * runs] if alternate else "A" * runs + "B" * runs
    sides: dict[str, list[object]] = {"A": [], "B": []}
    for place, side in enumerate(order):
        level_s = 0.1 * math.exp(draw.gauss(0.0, noise)) * (slower if side == "B" else 1.0)
        speed = 0.0 if alternate else math.exp(draw.gauss(0.0, 0.01))
        sides[side].append(run([level_s] * 3, order=place, **beside(speed)))
    whole = measurement([], session="one" if alternate else "")
    a, b = (replace(whole, runs=tuple(sides[side])) for side in "AB")  # type: ignore[arg-type]
    return a, b


def test_half_the_step_time_is_twice_as_fast() -> None:
    found = compare(of([0.2, 0.202, 0.198]), of([0.1, 0.101, 0.099]))
    assert found.verdict == "faster"
    assert found.ratio == pytest.approx(2.0, rel=1e-3)
    assert found.interval[0] < 2.0 < found.interval[1]
    assert not found.paired


def test_the_other_way_round_it_is_slower_by_the_same() -> None:
    a, b = of([0.2, 0.202, 0.198]), of([0.1, 0.101, 0.099])
    there, back = compare(a, b), compare(b, a)
    assert back.verdict == "slower"
    assert there.ratio * back.ratio == pytest.approx(1.0)
    assert there.interval[0] * back.interval[1] == pytest.approx(1.0)


def test_the_welch_interval_by_hand() -> None:
    # logs 0, ±0.01 on both sides: error sqrt(2 * 1e-4 / 3) = 0.008165, degrees 4, t = 4.604
    steps = [0.1 * math.exp(0.01 * at) for at in (-1, 0, 1)]
    found = compare(of(steps), of(steps))
    assert found.verdict == "no_difference"
    assert math.log(found.interval[1]) == pytest.approx(4.6041 * 0.0081650, rel=1e-4)


def test_a_certain_effect_below_one_per_cent_is_none() -> None:
    found = compare(of([0.1, 0.1, 0.1]), of([0.0992, 0.0992, 0.0992]))
    assert found.verdict == "no_difference"
    assert "+0.81 % is not over 1 %" in found.reason


def test_alternating_runs_of_one_session_are_paired() -> None:
    # The machine becomes 20 % slower from pair to pair; B is 5 % slower in every pair.
    levels = [0.1, 0.12, 0.144, 0.1728]
    orders = [(0, 1), (3, 2), (4, 5), (7, 6)]
    sides = [
        tuple(
            run([level * (1.05 * (1 + 0.001 * at) if side else 1)] * 3, order=pair[side])
            for at, (level, pair) in enumerate(zip(levels, orders, strict=True))
        )
        for side in (0, 1)
    ]
    whole = measurement([], session="one")
    found = compare(replace(whole, runs=sides[0]), replace(whole, runs=sides[1]))
    assert found.paired
    assert found.verdict == "slower"
    assert found.ratio == pytest.approx(1 / 1.0516, rel=1e-3)
    apart = compare(replace(whole, runs=sides[0]), replace(whole, runs=sides[1], session="two"))
    assert not apart.paired
    assert apart.verdict == "no_difference"


def test_one_side_after_the_other_is_not_paired() -> None:
    a, b = session(random.Random(1), noise=0.01, alternate=False)
    assert not compare(replace(a, session="one"), replace(b, session="one")).paired


def test_a_measurement_does_not_alternate_with_itself() -> None:
    a, _ = session(random.Random(1), noise=0.01)
    found = compare(a, a)
    assert (found.verdict, found.paired) == ("no_difference", False)


def test_a_change_of_the_machine_widens_the_interval_by_as_much() -> None:
    def side(seconds_s: float) -> Measurement:
        runs = tuple(run([level] * 3, **beside(seconds_s)) for level in (0.1, 0.101, 0.099))
        return replace(measurement([]), runs=runs)

    calm, moved = compare(side(1.0), side(1.0)), compare(side(1.0), side(1.05))
    wider = math.log(moved.interval[1]) - math.log(calm.interval[1])
    assert wider == pytest.approx(math.log(1.05))
    assert "own speed changed by -4.8 %" in moved.reason


def test_the_speeds_of_two_machines_say_nothing() -> None:
    a, b = of([0.1, 0.1, 0.1]), of([0.05, 0.05, 0.05])
    b = replace(b, environment=replace(ENVIRONMENT, host="other"))
    a, b = (replace(one, runs=tuple(replace(r, **beside(s)) for r in one.runs))
            for one, s in ((a, 1.0), (b, 0.5)))  # fmt: skip
    assert compare(a, b).interval == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": Protocol(version=2)}, "protocol.version differs: 1 and 2"),
        ({"protocol": Protocol(data="synthetic")}, "protocol.data differs: own and synthetic"),
        ({"protocol": Protocol(epochs=3)}, "protocol.epochs"),
        ({"protocol": Protocol(target_metric="loss")}, "protocol.target_metric"),
        ({"task": replace(TASK, mode="infer")}, "task.mode differs: train and infer"),
        ({"task": replace(TASK, title="other")}, "task.title differs: convnet and other"),
        ({"task": replace(TASK, parameter_count=2000)}, "differs: 1,000 and 2,000"),
        ({"task": replace(TASK, inputs=("float32[64]",))}, "task.inputs"),
        ({"task": replace(TASK, loss="mse")}, "task.loss"),
        ({"task": replace(TASK, data_set="digits")}, "task.data_set differs: none and digits"),
    ],
)
def test_what_does_not_compare_names_the_field(changes: dict[str, object], field: str) -> None:
    found = compare(of([0.1] * 5), of([0.1] * 5, **changes))
    assert found.verdict == "not_comparable"
    assert found.ratio == 0.0
    assert field in found.reason


GRAPH = Retreat(step="graph", words="in graph execution", title="no tile")
TRITON = Retreat(step="no_triton", words="without Triton", flags=("--xla_a=false",))


def side(asked: Execution, ran: str, *retreats: Retreat) -> Measurement:
    """A measurement whose recipe asks for one execution and whose model had another."""
    task = replace(TASK, execution=ran, retreats=retreats)  # type: ignore[arg-type]
    levels = [0.1, 0.101, 0.099] if ran == "xla" else [0.2, 0.202, 0.198]
    return of(levels, task=task, recipe=Recipe(execution=asked))


def test_xla_that_ended_in_graph_is_not_compared_with_graph() -> None:
    a, b = side("xla", "graph", TRITON, GRAPH), side("graph", "graph")
    for pair, name in (((a, b), "A"), ((b, a), "B")):
        found = compare(*pair)
        assert found.verdict == "not_comparable"
        assert found.reason.startswith(
            f"XLA failed to compile {name} (no tile), which ran in graph"
        )


def test_auto_that_ended_in_graph_is_not_compared_with_graph() -> None:
    found = compare(side("auto", "graph", GRAPH), side("graph", "graph"))
    assert found.verdict == "not_comparable"


def test_xla_with_less_of_it_is_compared_and_told() -> None:
    found = compare(side("graph", "graph"), side("xla", "xla", TRITON))
    assert found.verdict == "faster"
    assert ("task.retreats", "none", "without Triton") in found.differences


def test_too_few_steady_runs_do_not_compare() -> None:
    assert compare(of([0.1] * 5), of([0.1] * 2)).reason == (
        "B has 2 of 2 runs with a steady state; a comparison needs 3."
    )
    restless = tuple(run([0.1] * 3, steady_from=3) for _ in range(5))
    found = compare(replace(measurement([]), runs=restless), of([0.1] * 5))
    assert found.reason == "A has 0 of 5 runs with a steady state; a comparison needs 3."


def test_another_batch_compares_by_samples_per_second() -> None:
    # 64 in 0.1 s against 128 in 0.16 s: 640 and 800 samples/s
    found = compare(of([0.1] * 3), of([0.16] * 3, task=replace(TASK, batch_size=128)))
    assert found.ratio == pytest.approx(1.25)
    assert "samples per second compare, as the batches differ (64 and 128)" in found.reason
    assert ("task.batch_size", "64", "128") in found.differences


def test_differences_of_recipe_and_environment_are_listed() -> None:
    other = replace(ENVIRONMENT, device="gpu", cards=(replace(A100, power_limit_w=400.0),),
                    memory_bytes=16 << 30)  # fmt: skip
    b = of([0.1] * 3, recipe=Recipe(precision="mixed_float16"), environment=other)
    assert compare(of([0.1] * 3), b).differences == (
        ("recipe.precision", "none", "mixed_float16"),
        ("environment.device", "cpu", "gpu"),
        ("environment.cards", "none", "NVIDIA A100-SXM4-80GB, 400 W"),
        ("environment.memory_bytes", "8 GiB", "16 GiB"),
    )


def test_scaling_efficiency_is_the_ratio_over_that_of_the_replicas() -> None:
    # four cards: 4 * 64 samples in 0.125 s against 64 in 0.1 s = 3.2 times, of 4
    one = of([0.1] * 3, environment=replace(ENVIRONMENT, cards=(A100,)))
    four = of([0.125] * 3, task=replace(TASK, replica_count=4),
              environment=replace(ENVIRONMENT, cards=(A100,) * 4))  # fmt: skip
    assert compare(one, four).scaling_efficiency_ratio == pytest.approx(0.8)
    assert compare(one, one).scaling_efficiency_ratio is None
    mixed = replace(four, environment=replace(ENVIRONMENT, cards=(replace(A100, name="T4"),) * 4))
    assert compare(one, mixed).scaling_efficiency_ratio is None


@pytest.mark.parametrize("alternate", [True, False], ids=["paired", "apart"])
def test_equal_sides_differ_in_at_most_one_of_forty_cases(alternate: bool) -> None:
    draw = random.Random(20)
    batches = 60
    differing = [
        sum(
            compare(*session(draw, noise=draw.uniform(0.01, 0.03), alternate=alternate)).verdict
            != "no_difference"
            for _ in range(40)
        )
        for _ in range(batches)
    ]
    assert sum(count <= 1 for count in differing) >= 0.95 * batches


@pytest.mark.parametrize("alternate", [True, False], ids=["paired", "apart"])
def test_a_slowdown_of_five_per_cent_is_found_nearly_always(alternate: bool) -> None:
    draw = random.Random(21)
    verdicts = [
        compare(*session(draw, noise=0.01, slower=1.05, alternate=alternate)).verdict
        for _ in range(400)
    ]
    assert verdicts.count("slower") >= 0.95 * len(verdicts)
    assert "faster" not in verdicts


def swinging(
    draw: random.Random, *, runs: int, slower: float = 1.0, orders: Sequence[int] = ()
) -> Measurement:
    """Runs on a machine whose own speed swings by 8 %, and the computation beside them with it.

    With ``orders`` they stand at these places of a session that both sides share.
    """
    made = []
    for order in orders or range(runs):
        swing = draw.gauss(0.0, 0.08)
        level_s = 0.1 * slower * math.exp(1.3 * swing + draw.gauss(0.0, 0.01))
        beside_s = 0.001 * math.exp(swing + draw.gauss(0.0, 0.003))
        made.append(run([level_s] * 3, order=order, beside_s=(beside_s,), beside_places=(2,)))
    return replace(measurement([]), runs=tuple(made), session="one" if orders else "")


def test_a_machine_that_swings_hides_no_slowdown_and_makes_none_up() -> None:
    draw = random.Random(5)
    same = [compare(swinging(draw, runs=6), swinging(draw, runs=6)) for _ in range(200)]
    slow = [
        compare(swinging(draw, runs=6), swinging(draw, runs=6, slower=1.05)) for _ in range(100)
    ]
    assert sum(one.verdict != "no_difference" for one in same) <= 5
    assert sum(one.verdict == "slower" for one in slow) >= 95
    assert "timed beside the steps" in slow[0].reason


def test_in_turns_the_swing_is_taken_out_as_well() -> None:
    draw = random.Random(6)
    first, second = (0, 3, 4, 7, 8, 11), (1, 2, 5, 6, 9, 10)

    def verdicts(slower: float, count: int) -> list[str]:
        found: list[str] = []
        for _ in range(count):
            a = swinging(draw, runs=6, orders=first)
            b = swinging(draw, runs=6, orders=second, slower=slower)
            one = compare(a, b)
            assert one.paired
            found.append(one.verdict)
        return found

    assert verdicts(1.0, 200).count("no_difference") >= 195
    assert verdicts(1.05, 100).count("slower") >= 95


def test_other_threads_change_the_speed_beside_the_steps_too() -> None:
    draw = random.Random(2)
    a, b = swinging(draw, runs=6), swinging(draw, runs=6)
    fewer = replace(b, recipe=Recipe(threads_intra=1))
    assert "beside" not in compare(a, fewer).reason


def test_the_speed_beside_the_steps_is_not_asked_on_another_machine() -> None:
    draw = random.Random(1)
    a, b = swinging(draw, runs=6), swinging(draw, runs=6)
    elsewhere = replace(b, environment=replace(ENVIRONMENT, host="other"))
    assert "beside" in compare(a, b).reason
    assert "beside" not in compare(a, elsewhere).reason
    assert "beside" not in compare(a, measurement([[0.1], [0.11], [0.1], [0.1], [0.12]])).reason
