from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.serving.front.messages import NotAllowed, Unauthorized, defect, refusal
from tfdyno.serving.front.table import Refused

if TYPE_CHECKING:
    import pytest


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


def test_what_nobody_foresaw_is_one_line_for_the_client_and_all_of_it_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        raise ValueError("a\n/srv/secret")
    except ValueError as error:
        refused = defect(error)
    assert (refused.code, refused.text) == (500, "ValueError: a")
    assert __file__ in capsys.readouterr().err
