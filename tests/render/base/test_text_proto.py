"""render/base/text_proto: fields, messages, lists and quotes as protocol buffers read them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.render.base.text_proto import Word, text_proto


def test_every_kind_of_field_has_its_form() -> None:
    message = {
        "name": 'a "b"\\\n',
        "kind": Word("KIND_GPU"),
        "on": True,
        "size": [1, 2],
        "none": None,
        "inner": {"x": 0.5, "empty": {}},
    }
    assert text_proto(message, head=("said",)).splitlines() == [
        "# said",
        'name: "a \\"b\\"\\\\\\n"',
        "kind: KIND_GPU",
        "on: true",
        "size: 1",
        "size: 2",
        "inner {",
        "  x: 0.5",
        "  empty {}",
        "}",
    ]


@given(text=st.text())
def test_protocol_buffers_read_every_text_back(text: str) -> None:
    from google.protobuf import text_format
    from google.protobuf.wrappers_pb2 import StringValue

    assert text_format.Parse(text_proto({"value": text}), StringValue()).value == text
