"""Facts of events that are not what they should be."""

from __future__ import annotations

from tests.runtime.planted_profiles import COMPUTE, GEMM, Made, space

from tfdyno.profile.planes import read_planes


def facts_of(**facts: int | str) -> dict[str, list[int]]:
    made = [Made(name=GEMM, at_us=0, us=1, facts=facts)]
    (plane,) = read_planes(space({"/device:GPU:0": {COMPUTE: made}})).planes
    return {name: column.tolist() for name, column in plane.lines[0].facts.items()}


def test_a_number_where_a_text_should_be_is_none() -> None:
    assert facts_of(tf_op=10**9, memcpy_details=7, correlation_id=4) == {"correlation_id": [4]}


def test_a_text_where_a_number_should_be_is_none() -> None:
    assert facts_of(correlation_id="four", tf_op="a:B") == {"tf_op": [0]}


def test_a_text_may_be_the_number_of_a_name() -> None:
    # plane: name, a line with an event that says fact 1 refers to name 2; facts 1 and 2
    stat = b"\x22\x04\x08\x01\x38\x02"
    event = b"\x08\x05\x18\x09" + stat
    line = b"\x12\x01s" + b"\x22" + bytes([len(event)]) + event
    named = b"".join(
        b"\x2a" + bytes([len(entry)]) + entry
        for number, name in ((1, b"tf_op"), (2, b"m/Mul:Mul"))
        for value in [bytes([8, number, 18, len(name)]) + name]
        for entry in [bytes([8, number, 18, len(value)]) + value]
    )
    plane = b"\x12\x0d/device:GPU:0" + b"\x1a" + bytes([len(line)]) + line + named
    (found,) = read_planes(b"\x0a" + bytes([len(plane)]) + plane).planes
    assert [found.texts[at] for at in found.lines[0].facts["tf_op"]] == ["m/Mul:Mul"]
