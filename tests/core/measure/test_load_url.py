from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.load_url import read_load_url


@pytest.mark.parametrize(
    ("text", "predict", "metadata"),
    [
        ("http://h:1/v1/models/m", "/v1/models/m:predict", "/v1/models/m/metadata"),
        ("http://h:1/v1/models/m:predict", "/v1/models/m:predict", "/v1/models/m/metadata"),
        (
            "http://h:1/a/v1/models/m/versions/3:predict",
            "/a/v1/models/m/versions/3:predict",
            "/a/v1/models/m/versions/3/metadata",
        ),
        ("http://h:1/v2/models/m", "/v2/models/m/infer", "/v2/models/m"),
        ("http://h:1/v2/models/m/infer", "/v2/models/m/infer", "/v2/models/m"),
        ("http://h:1/v2/models/m/versions/1", "/v2/models/m/versions/1/infer",
         "/v2/models/m/versions/1"),
    ],
)  # fmt: skip
def test_both_routes_are_read_with_and_without_their_verb(
    text: str, predict: str, metadata: str
) -> None:
    url = read_load_url(text)
    assert (url.predict_path, url.metadata_path, url.model) == (predict, metadata, "m")


def test_ports_and_names_of_hosts_are_kept() -> None:
    assert read_load_url("https://a.b/v1/models/m").netloc == "a.b:443"
    assert read_load_url("http://[::1]:8/v1/models/m").netloc == "[::1]:8"
    assert read_load_url("http://[::1]:8/v1/models/m").is_local
    assert not read_load_url("http://10.0.0.1:8/v1/models/m").is_local


@pytest.mark.parametrize(
    "text",
    [
        "", "127.0.0.1:8501", "http://h/", "http://h/v1/models/", "ftp://h/v1/models/m",
        "http://h:x/v1/models/m", "http://h/v1/models/m\r\nX: y", "http://h/v1/models/m?a=1",
        "http://u:p@h/v1/models/m", "http://h/v1/models/m:classify", "http:///v1/models/m",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_model_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_load_url(text)
