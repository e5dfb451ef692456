"""Memory that grows with the steps, and who holds it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.watched import grown, line_of

pytestmark = pytest.mark.tf
MIB = 1 << 20


def _only(name: str) -> dict[str, Any]:
    growth: list[dict[str, Any]] = grown()[name]["growth"]
    assert len(growth) == 1
    assert growth[0]["where"] == "host"
    assert growth[0]["low_bytes_per_step"] <= growth[0]["bytes_per_step"]
    return growth[0]


def test_a_list_of_tensors_is_told_with_its_line_and_its_bytes() -> None:
    one = _only("tensors")
    # By hand: 512 x 512 floats are 1 MiB.
    assert one["bytes_per_step"] == pytest.approx(MIB, rel=0.1)
    assert one["kind"] == "tensors"
    line = line_of("tensors", "kept.append")
    assert one["suspects"] == [f"list of 60 tensors held by {line} (kept)"]


def test_what_a_running_function_holds_is_found_too() -> None:
    line = line_of("local", "outputs[number] =")
    assert _only("local")["suspects"] == [f"dict of 60 tensors held by {line} (outputs)"]


def test_losses_kept_as_tensors_are_growth_and_kept_as_numbers_are_none() -> None:
    assert 512 < _only("scalars")["low_bytes_per_step"] < 4096
    assert grown()["floats"]["growth"] == []


def test_a_callback_that_keeps_weights_is_told_by_its_attribute() -> None:
    one = _only("logs")
    assert one["kind"] == "logs"
    # By hand: 256 x 128 + 128 floats are 131,584 bytes.
    assert one["low_bytes_per_step"] == pytest.approx(131_584, rel=0.1)
    line = line_of("logs", "self.rows.append")
    assert one["suspects"][0] == f"list of 60 entries held by {line} (Keep.rows)"


def test_an_array_that_is_joined_in_each_step_grows_by_its_bytes() -> None:
    one = _only("array")
    assert one["bytes_per_step"] >= 64 * 64 * 8  # 64 rows of 64 doubles
    assert one["suspects"][0].endswith(f"held by {line_of('array', 'joined = np.conc')} (joined)")


@pytest.mark.parametrize(("name", "kind"), [("iterators", "iterators"),
                                            ("new_functions_kept", "functions")])  # fmt: skip
def test_what_python_cannot_size_is_told_by_resident_memory(name: str, kind: str) -> None:
    one = _only(name)
    assert one["kind"] == kind
    assert one["low_bytes_per_step"] > 10_000
    assert "(kept)" in one["suspects"][0]


# Memory alone: what the allocators have in use is read as well.

ALONE = """
import functools
from dataclasses import replace
import numpy as np, tensorflow as tf
from tfdyno.core.base.codec import to_builtins
from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.diagnose.clock import StepTimes
from tfdyno.runtime.diagnose.growth import watched as growth_watched
from tfdyno.runtime.diagnose.watching import Watched

LIMITS = Limits(memory_alone=True, until_sure=True, own_s=1.0, most_s=4.0, least_steps=60,
                warm_s=0.2, most_warm_s=0.5)
LONGER = replace(LIMITS, most_s=120.0)
growth_watched._MADE_S = 60.0  # it ends with the looks it needs, which take long beside other work
w = tf.Variable(tf.ones((64, 64)))
x = tf.ones((32, 64))

@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
    w.assign_sub(0.001 * tape.gradient(loss, w))
    return loss

def watched(step, limits=LIMITS):
    times = StepTimes(limits=limits)
    said = []
    watch = Watched(times, progress=said.append)
    number = 0
    while not times.done:
        number += 1
        times.begin()
        train()
        times.end()
        step(number)
    watch.close()
    return {"steps": times.step_count, "slow": times.slowed_from, "said": said,
            "growth": to_builtins(watch.growth), "memory": to_builtins(watch.memory)}

kept = []
result = {"healthy": watched(lambda number: None)}
result["tensors"] = watched(lambda number: kept.append(tf.random.normal((256, 512)) + 1.0))
keep = functools.lru_cache(maxsize=None)(lambda number: np.ones(4096))
result["cache"] = watched(keep, LONGER)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = tmp_path_factory.mktemp("alone") / "alone.py"
    script.write_text(ALONE)
    run = f"import runpy\nresult = runpy.run_path({str(script)!r})['result']\n"
    return dict(in_tensorflow(run))


def _alone_line(text: str) -> str:
    lines = ALONE.splitlines()
    return f"alone.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


def _course(told: dict[str, Any], where: str, counted_by: str = "allocator") -> dict[str, Any]:
    rows = told["memory"]
    return next(one for one in rows if (one["where"], one["counted_by"]) == (where, counted_by))


def test_a_healthy_loop_grows_by_less_than_the_smallest_tensor(alone: dict[str, Any]) -> None:
    healthy = alone["healthy"]
    assert healthy["growth"] == []
    host = _course(healthy, "host")
    # What the look itself keeps of each step is no growth of the training's.
    assert host["bytes_per_step"] < 400
    assert host["low_bytes_per_step"] <= 256
    assert host["steps"] >= 60
    assert host["free_bytes"] > 2**20


def test_a_list_of_tensors_is_told_to_the_byte(alone: dict[str, Any]) -> None:
    told = alone["tensors"]
    # By hand: 256 x 512 floats are 512 KiB; TensorFlow's own account, which it keeps with oneDNN
    # alone, has nothing else.
    if any(one["where"] == "CPU:0" for one in told["memory"]):
        assert _course(told, "CPU:0")["bytes_per_step"] == pytest.approx(2**19, rel=0.001)
    (growth,) = told["growth"]
    assert growth["kind"] == "tensors"
    assert growth["bytes_per_step"] == pytest.approx(2**19, rel=0.15)
    assert growth["suspects"][0].endswith(f"held by {_alone_line('kept.append')} (kept)")
    assert growth["high_bytes_per_step"] >= growth["bytes_per_step"]


def test_what_no_name_holds_is_told_by_the_line_that_makes_it(alone: dict[str, Any]) -> None:
    told = alone["cache"]
    (growth,) = told["growth"]
    # By hand: 4096 doubles are 32 KiB.
    assert growth["bytes_per_step"] == pytest.approx(32_768, rel=0.15)
    assert growth["kind"] == "objects"
    assert _alone_line("lru_cache(") in growth["suspects"][0]
    assert told["slow"] > 0  # steps from there on do not count


def test_the_steps_so_far_are_told_while_it_looks(alone: dict[str, Any]) -> None:
    assert alone["healthy"]["said"][0].endswith("iB")
    assert " steps, the process holds " in alone["healthy"]["said"][0]


def test_the_course_of_each_memory_is_kept_thinned_to_its_last_step(alone: dict[str, Any]) -> None:
    for one in alone["tensors"]["memory"]:
        points = one["course_bytes"]
        assert 14 <= len(points) <= 160
        assert points[-1][1] == one["end_bytes"]
        assert [step for step, _ in points] == sorted({step for step, _ in points})
    steady = _course(alone["tensors"], "host")["course_bytes"][-70:]
    # By hand: 512 KiB a step.
    steps, grown_bytes = (last - first for first, last in zip(steady[0], steady[-1], strict=True))
    assert grown_bytes == pytest.approx(steps * 2**19, rel=0.2)


ONCE = """
import tensorflow as tf
from tfdyno.runtime.diagnose.growth.watched import GrowthWatch

def suspects(*, kept, in_rings):
    watch, held, once = GrowthWatch(), [], []
    watch.start()
    for step in range(1, 41):
        if step == 2:
            once = tuple(tf.ones(2) for _ in range(100))
        held += [tf.ones(2) for _ in range(kept)]
        for _ in range(in_rings):
            ring = [tf.ones(2)]
            ring.append(ring)
        watch.step()
    watch.facts()
    watch.stop()
    return [one.kind for one in watch._watch.found()]

result = {"kept": suspects(kept=3, in_rings=0), "dropped": suspects(kept=0, in_rings=3)}
"""


def test_neither_what_the_first_steps_make_nor_what_waits_to_be_collected_is_growth() -> None:
    assert dict(in_tensorflow(ONCE)) == {"kept": ["tensors"], "dropped": []}
