"""Traces in JSON hold the same events as the planes that they were made from."""

from __future__ import annotations

import gzip
import json

import pytest
from tests.runtime.planted_profiles import Training, json_trace, planes_of, space
from tests.turns import ratio

from tfdyno.profile import json as profile_json
from tfdyno.profile.json import read_json_trace
from tfdyno.profile.lines import ProfileError
from tfdyno.profile.planes import read_planes


def test_a_trace_has_the_events_of_its_planes() -> None:
    made = planes_of(Training(copy_us=7, input_us=9))
    theirs = read_planes(space(made))
    ours = read_json_trace(gzip.decompress(json_trace(made)))
    assert [plane.name for plane in ours.planes] == [plane.name for plane in theirs.planes]
    assert ours.event_count == theirs.event_count
    kernels, same = ours.planes[0].lines[0], theirs.planes[0].lines[0]
    assert kernels.name == same.name
    assert kernels.begin_s == pytest.approx(same.begin_s, abs=1e-9)
    assert kernels.facts["correlation_id"].tolist() == same.facts["correlation_id"].tolist()
    copies = ours.planes[0].lines[1]
    assert ours.planes[0].texts[copies.facts["memcpy_details"][0]].startswith("kind_src:pageable")


def test_lines_that_a_viewer_derives_are_left_out() -> None:
    made = planes_of(Training(steps=2))
    made["/device:GPU:0"]["Steps"] = made["/device:GPU:0"]["Stream #20(Compute)"]
    made["/device:GPU:0"]["XLA Ops"] = next(iter(made["/device:GPU:0"].values()))
    trace = read_json_trace(gzip.decompress(json_trace(made)))
    assert "XLA Ops" not in [line.name for line in trace.planes[0].lines]


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        ({"traceEvents": []}, "holds no events"),
        ({"traceEvents": [{"ph": "M"}]}, "holds no events"),
        ({"traceEvents": 5}, "no trace"),
        ({"schemaVersion": 1, "traceEvents": []}, "of PyTorch"),
        ([{"ph": "X", "name": "aten::add", "pid": "CPU functions", "ts": 1, "dur": 2}], "PyTorch"),
        ([{"ph": "X", "name": "other"}, 5], "no trace"),
    ],
)
def test_other_json_is_refused(trace: object, why: str) -> None:
    with pytest.raises(ProfileError, match=why):
        read_json_trace(json.dumps(trace).encode())


def test_more_json_than_a_trace_can_have_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_json, "limit", lambda _name: 30.0)
    with pytest.raises(ProfileError, match=r"more than 1 GiB of JSON; give the xplane\.pb"):
        read_json_trace(b'{"traceEvents": []' + b" " * 30)


def test_the_time_of_reading_grows_with_the_events_and_not_faster() -> None:
    def events(count: int) -> bytes:
        one = {"ph": "X", "pid": 1, "tid": 1, "dur": 1, "name": "k", "args": {"tf_op": "a:B"}}
        return json.dumps({"traceEvents": [{**one, "ts": at} for at in range(count)]}).encode()

    few, many = events(2_000), events(60_000)
    read_json_trace(few)
    # 30 times as many: 900 times as long where each event goes through all of them
    assert ratio(lambda: read_json_trace(many), lambda: read_json_trace(few)) < 150
