"""Planes, lines and events as TensorFlow's own classes read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.planted_profiles import COMPUTE, GEMM, REAL, Made, Training, planes_of, space

from tfdyno.profile.files import load_profile
from tfdyno.profile.lines import ProfileError
from tfdyno.profile.planes import read_planes

if TYPE_CHECKING:
    from pathlib import Path


def test_times_are_seconds_since_the_first_event() -> None:
    made = [Made(name="b", at_us=30, us=2), Made(name="a", at_us=10, us=5)]
    (plane,) = read_planes(space({"/device:GPU:0": {COMPUTE: made}})).planes
    (line,) = plane.lines
    assert (plane.name, line.name) == ("/device:GPU:0", COMPUTE)
    assert [plane.names[at] for at in line.name_index] == ["a", "b"]
    assert line.begin_s == pytest.approx([0, 20e-6])
    assert line.end_s == pytest.approx([5e-6, 22e-6])


def test_facts_are_numbers_or_places_of_texts() -> None:
    facts: dict[str, int | str] = {"correlation_id": 7, "tf_op": "adam/Mul:Mul", "unknown": 3}
    made = [Made(name=GEMM, at_us=0, us=1, facts=facts), Made(name=GEMM, at_us=2, us=1)]
    (plane,) = read_planes(space({"/device:GPU:0": {COMPUTE: made}})).planes
    found = plane.lines[0].facts
    assert found.keys() == {"correlation_id", "tf_op"}
    assert found["correlation_id"].tolist() == [7, -1]
    assert plane.texts[found["tf_op"][0]] == "adam/Mul:Mul"
    assert found["tf_op"][1] == -1


def test_what_the_profiler_says_is_kept() -> None:
    said = b"\x12\x06no gpu\x1a\x04late"  # errors and warnings of the space
    assert read_planes(space(planes_of(Training(steps=2))) + said).notes == ("no gpu", "late")


@pytest.mark.parametrize("size", range(1, 400, 7))
def test_no_cut_is_read_as_something_else(size: int) -> None:
    whole = space(planes_of(Training(steps=1, kernels=2)))
    with pytest.raises(ProfileError):
        read_planes(whole[:-size])


def test_random_damage_never_escapes_as_another_error() -> None:
    whole = bytearray(space(planes_of(Training(steps=2, kernels=2))))
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            damaged[place] = random.integers(0, 256)
        try:
            read_planes(bytes(damaged))
        except ProfileError:
            continue


THEIRS = """
import gzip
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace
data = open(PATH, "rb").read()
space = XSpace.FromString(gzip.decompress(data) if PATH.endswith(".gz") else data)
result = []
for plane in space.planes:
    said = lambda event: [plane.stat_metadata[stat.metadata_id].name for stat in event.stats]
    result.append([plane.name, [
        [[line.timestamp_ns * 1000 + e.offset_ps, e.duration_ps,
          plane.event_metadata[e.metadata_id].name, said(e)]
         for e in sorted(line.events, key=lambda e: e.offset_ps)]
        for line in plane.lines]])
"""


@pytest.mark.tf
@pytest.mark.parametrize("made", [False, True], ids=["recorded", "made by the tests"])
def test_tensorflow_reads_the_same(tmp_path: Path, made: bool) -> None:
    file = tmp_path / "made.xplane.pb" if made else REAL
    if made:
        file.write_bytes(space(planes_of(Training(copy_us=9))))
    theirs = in_tensorflow(f"PATH = {str(file)!r}\n{THEIRS}")
    ours = load_profile(file)
    first_ps = min(event[0] for _, lines in theirs for line in lines for event in line)
    assert [plane.name for plane in ours.planes] == [name for name, _ in theirs]
    for plane, (_, lines) in zip(ours.planes, theirs, strict=True):
        for line, events in zip(plane.lines, lines, strict=True):
            assert line.begin_s * 1e12 == pytest.approx([e[0] - first_ps for e in events], abs=1000)
            seconds = [event[1] * 1e-12 for event in events]
            assert line.end_s - line.begin_s == pytest.approx(seconds, abs=1e-9)
            assert [plane.names[at] for at in line.name_index] == [event[2] for event in events]
            for fact, column in line.facts.items():
                assert (column >= 0).tolist() == [fact in event[3] for event in events]
