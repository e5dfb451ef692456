from __future__ import annotations

from tfdyno.runtime.front_messages import NotAllowed, Unauthorized, refusal
from tfdyno.runtime.front_table import Refused


def test_an_error_is_an_object_with_one_key_and_the_headers_that_belong_to_it() -> None:
    for refused, headers in (
        (Refused(400, "x"), ()),
        (Refused(503, "x", retry_after_s=2), (("Retry-After", "2"),)),
        (NotAllowed("POST"), (("Allow", "POST"),)),
        (Unauthorized(), (("WWW-Authenticate", "Bearer"),)),
    ):
        response = refusal(refused)
        assert (response.code, response.headers) == (refused.code, headers)
    assert refusal(Refused(400, 'a "b"')).body == b'{"error":"a \\"b\\""}'
