"""Whole profiles: planted facts are told, damaged files end in one sentence."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.planted_profiles import (
    CONV,
    GEMM,
    REAL,
    Made,
    Planes,
    Training,
    json_trace,
    planes_of,
    space,
)

from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.diagnose import ReadProfile
from tfdyno.profile.child import handle

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.measure.step_facts import StepFacts

MS = 1e-3


def read(path: Path) -> StepFacts:
    return handle(ReadProfile(path=path), lambda _: None)


def told(folder: Path, training: Training) -> StepFacts:
    file = folder / "gpu.xplane.pb"
    file.write_bytes(space(planes_of(training)))
    return read(file)


def parts(facts: StepFacts) -> dict[str, Any]:
    """What is not nothing, in milliseconds."""
    return {name: pytest.approx(s / MS, abs=1e-6) for name, s in facts.split_s.items() if s > 1e-9}


@pytest.mark.parametrize(
    ("training", "expected_ms"),
    [
        # 10 kernels of 1 ms, each with a gap of 5 us
        (Training(), {"compute": 10, "launch": 0.05}),
        # the host waits 10 ms for data; the gap before that wait stays one
        (Training(input_us=10_000), {"input": 10, "compute": 10, "launch": 0.05}),
        # 100 kernels of 10 us, each with a gap of 40 us
        (
            Training(kernels=100, kernel_us=10, gap_us=40),
            {"compute": 1, "launch": 4},
        ),
        # a pause of 3 ms (with the gap before it) is too long to be the start of an operation
        (Training(pause_us=3000), {"host": 3.005, "compute": 10, "launch": 0.045}),
        (Training(copy_us=1000), {"copy": 1, "compute": 10, "launch": 0.05}),
        # 3 ms beside kernels cost nothing but what they cover of the gaps: two of 5 us
        (Training(exchange="hidden"), {"communication": 0.01, "compute": 10, "launch": 0.04}),
        (Training(exchange="exposed"), {"communication": 3, "compute": 10, "launch": 0.055}),
    ],
    ids=["healthy", "input", "launch", "host", "copy", "hidden exchange", "exposed exchange"],
)
def test_what_was_planted_is_told(
    tmp_path: Path, training: Training, expected_ms: dict[str, float]
) -> None:
    facts = told(tmp_path, training)
    assert parts(facts) == expected_ms
    assert facts.steps_seen == training.steps - 1
    assert facts.step_s == pytest.approx([training.step_us * 1e-6] * (training.steps - 1))


def test_a_long_step_is_told_with_what_was_in_it(tmp_path: Path) -> None:
    training = Training(input_us=2000)
    begins_us = 1000.0 + 5 * training.step_us  # the sixth step waits for 9 ms more
    planes = planes_of(training)
    for lines in planes.values():
        for line, events in lines.items():
            lines[line] = [
                replace(one, at_us=one.at_us + 9000) if one.at_us > begins_us + 100 else one
                for one in events
            ]
    waits = planes["/host:CPU"]["tf_data_iterator_get_next/1"]
    waits[5] = replace(waits[5], us=waits[5].us + 9000)
    file = tmp_path / "gpu.xplane.pb"
    file.write_bytes(space(planes))
    timeline = read(file).timeline
    assert timeline
    assert len(timeline.whole_s) == 11
    (stall,) = timeline.stalls
    assert stall.whole_s == pytest.approx(training.step_us * 1e-6 + 9 * MS)
    assert stall.input_s == pytest.approx(11 * MS)


def test_an_exchange_is_hidden_or_exposed(tmp_path: Path) -> None:
    hidden = told(tmp_path, Training(exchange="hidden")).operations
    exposed = told(tmp_path, Training(exchange="exposed")).operations
    assert hidden is not None
    assert exposed is not None
    assert hidden.collective_hidden_s == pytest.approx(2.99 * MS)
    assert hidden.collective_exposed_s == pytest.approx(0.01 * MS)
    assert exposed.collective_hidden_s == 0
    assert exposed.collective_exposed_s == pytest.approx(3 * MS)


def test_the_operations_of_a_step(tmp_path: Path) -> None:
    facts = told(tmp_path, Training(names=(GEMM, CONV), copy_us=1000))
    operations = facts.operations
    assert operations is not None
    assert operations.class_s == {
        "gemm": pytest.approx(5 * MS),
        "conv": pytest.approx(5 * MS),
    }
    assert operations.count_per_step == 11  # ten kernels and a copy
    assert operations.busy_s == pytest.approx(11 * MS)
    assert operations.copy_s == pytest.approx(1 * MS)
    assert operations.copied_bytes == 4096
    assert [name for name, _ in operations.largest] == [GEMM, CONV, "MemcpyH2D"]


def test_a_host_that_runs_ahead_does_not_shift_the_steps_of_the_device(tmp_path: Path) -> None:
    ahead = told(tmp_path, Training(input_us=4000, ahead_us=700))
    assert parts(ahead) == {"input": 4, "compute": 10, "launch": 0.05}


@pytest.mark.parametrize("host", [True, False], ids=["host without markers", "no host"])
def test_without_markers_steps_come_from_the_pattern_and_that_is_said(
    tmp_path: Path, host: bool
) -> None:
    names = ("first_gemm", GEMM, GEMM, CONV, GEMM)
    training = Training(markers=False, host=host, kernels=5, pause_us=3000, names=names)
    facts = told(tmp_path, training)
    assert facts.step_s == pytest.approx([training.step_us * 1e-6] * (training.steps - 1))
    assert "no step markers: steps are derived" in facts.notes[0]
    assert "(first_gemm)" in facts.notes[0]  # the pause of 3 ms is before it
    assert any("no events of the host" in note for note in facts.notes) is not host


def test_steps_at_the_end_of_an_epoch_are_left_out(tmp_path: Path) -> None:
    planes = planes_of(Training(steps=10))
    late = planes_of(Training(steps=10))
    for plane, lines in late.items():
        for line, made in lines.items():
            moved = [_later(one, 200_000) for one in made]
            planes[plane][line] += moved
    (tmp_path / "a.xplane.pb").write_bytes(space(planes))
    facts = read(tmp_path / "a.xplane.pb")
    assert (facts.steps_seen, len(facts.step_s)) == (19, 18)
    assert parts(facts) == {"compute": 10, "launch": 0.05}
    assert any(note.startswith("1 of 19 steps took more than three") for note in facts.notes)


def _later(one: Made, us: float) -> Made:
    facts = {
        name: value + 1000 if isinstance(value, int) else value for name, value in one.facts.items()
    }
    return Made(name=one.name, at_us=one.at_us + us, us=one.us, facts=facts)


def test_the_busiest_of_several_gpus_is_told(tmp_path: Path) -> None:
    planes = planes_of(Training())
    less = planes_of(Training(kernel_us=500, gap_us=505))["/device:GPU:0"]
    (tmp_path / "a.xplane.pb").write_bytes(space({"/device:GPU:1": less, **planes}))
    facts = read(tmp_path / "a.xplane.pb")
    assert (facts.replica_count, facts.device) == (2, "gpu")
    assert parts(facts) == {"compute": 10, "launch": 0.05}
    assert "2 GPUs: the times are those of the busiest." in facts.notes


def test_a_trace_in_json_tells_the_same(tmp_path: Path) -> None:
    planes = planes_of(Training(input_us=10_000))
    (tmp_path / "gpu.trace.json.gz").write_bytes(json_trace(planes))
    facts = read(tmp_path / "gpu.trace.json.gz")
    assert parts(facts) == {"input": 10, "compute": 10, "launch": 0.05}


def test_a_real_profile_of_keras_is_split() -> None:
    facts = read(REAL)
    assert (facts.device, facts.execution, facts.steps_seen) == ("cpu", "graph", 11)
    assert sum(facts.split_s.values()) == pytest.approx(sum(facts.step_s) / len(facts.step_s))
    assert max(facts.split_s, key=facts.split_s.__getitem__) == "input"
    assert 8 * MS < facts.waits_s < 10 * MS  # 10 ms were planted; prefetching hid some
    assert facts.input is not None
    slowest = max(facts.input.stages, key=lambda stage: stage.own_s)
    assert (slowest.kind, slowest.runs_python) == ("map", True)
    assert facts.operations is not None
    assert set(facts.operations.class_s) == {
        "gemm", "elementwise", "optimizer", "reduction", "data_movement"
    }  # fmt: skip
    assert facts.notes[0].startswith(
        "The profile has no step markers: each call of multi_step_on_iterator counts as one step"
    )


TPU: Planes = {"/device:TPU:0": {"Steps": [Made(name="1", at_us=0, us=5)]}}
ONCE: Planes = {"/device:GPU:0": {"Stream #13(Compute)": [Made(name=GEMM, at_us=0, us=5)]}}
HOST: Planes = {"/host:CPU": {"python": [Made(name="work", at_us=0, us=5)]}}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "is no profile"),
        (b"hello, this is a text\n" * 9, "is no profile"),
        (space(planes_of(Training()))[:-40], "is cut off"),
        (gzip.compress(space(planes_of(Training())))[:-40], "cut off"),
        (b'{"traceEvents": [{"ph": "X"', "cut off"),
        (b'{"a": 1}', "no trace"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "trace of PyTorch"),
        (b"\x08\x01\x12\x08saved_mo", "not laid out as one (field 1)"),
        (space(TPU), "of a TPU"),
        (space(ONCE), "shows no step: nothing repeats in its 1 operations"),
        (space(HOST), "none of them is an operation"),
        (space({"/host:CPU": {}}), "no events at all"),
    ],
)
def test_what_is_no_profile_ends_in_one_sentence(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    file = tmp_path / "given.xplane.pb"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read(file)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_real_profile_that_is_cut_anywhere_says_so(tmp_path: Path, packed: bool) -> None:
    whole = REAL.read_bytes() if packed else gzip.decompress(REAL.read_bytes())
    random = Random(1)
    file = tmp_path / "cut.xplane.pb"
    for size in [1, 2, len(whole) - 1, *(random.randrange(3, len(whole)) for _ in range(60))]:
        file.write_bytes(whole[:size])
        with pytest.raises(UsageError) as caught:
            read(file)
        text = str(caught.value)
        assert "\n" not in text
        assert "is cut off" in text or size < 3


def test_a_cut_off_profile_names_its_whole_parts(tmp_path: Path) -> None:
    file = tmp_path / "cut.xplane.pb"
    file.write_bytes(space(planes_of(Training()))[:-40])
    with pytest.raises(UsageError, match="is cut off behind its whole parts /device:GPU:0;"):
        read(file)


def test_one_marked_step_is_told_as_one_and_none_as_none(tmp_path: Path) -> None:
    once = told(tmp_path, Training(steps=1))
    assert (len(once.step_s), once.notes[0]) == (1, "The profile holds one step only.")
    # nine gaps of 5 us, and 3 until the marker ends
    assert parts(once) == {"compute": 10, "launch": 0.048}
    with pytest.raises(UsageError, match="no events at all"):
        told(tmp_path, Training(steps=0))


def test_many_names_that_never_come_again_do_not_fill_memory(tmp_path: Path) -> None:
    names = tuple(f"kernel_{n}" if n % 2 else "again" for n in range(30_000))
    training = Training(
        steps=1, kernels=30_000, kernel_us=1, markers=False, host=False, names=names
    )
    with pytest.raises(UsageError, match="shows no step: nothing repeats"):
        told(tmp_path, training)


def test_a_profile_is_read_without_tensorflow() -> None:
    code = "import sys, tfdyno.profile.child as _; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"tensorflow", "keras", "jax", "xprof", "google.protobuf"} & {*ran.stdout.split()}


@pytest.mark.parametrize("packed", [False, True], ids=["planes", "json"])
def test_damage_anywhere_ends_in_a_sentence_or_is_harmless(tmp_path: Path, packed: bool) -> None:
    planes = planes_of(Training(steps=4, kernels=3, input_us=50, copy_us=9, exchange="hidden"))
    whole = gzip.decompress(json_trace(planes)) if packed else space(planes)
    random = Random(0)
    file = tmp_path / "a.xplane.pb"
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(random.choice((1, 2, 5))):
            damaged[random.randrange(len(whole))] = random.randrange(256)
        file.write_bytes(damaged)
        try:
            facts = read(file)
        except UsageError:
            continue
        assert min(facts.split_s.values()) >= 0
        assert sum(facts.split_s.values()) == pytest.approx(sum(facts.step_s) / len(facts.step_s))
