from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts
from tfdyno.probe.machine.record import read_environment, save_environment
from tfdyno.probe.machine.redact import Identity

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, content: bytes) -> Path:
    path = folder / "env.json"
    path.write_bytes(content)
    return path


def test_the_short_form_gives_its_words(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"tf": "2.20", "cuda": 12.5, "gpu": null, "os": "Windows 11"}')
    assert read_environment(path) == {"tf": "2.20", "cuda": "12.5", "os": "Windows 11"}


def test_an_empty_list_of_visible_devices_is_not_forgotten(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"cuda_visible_devices": ""}')
    assert read_environment(path) == {"cuda_visible_devices": ""}


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    facts = MachineFacts(system="linux", tensorflow="2.21.0", gpus=(GpuFacts(name="Tesla T4"),))
    save_environment(tmp_path / "env.json", facts, Identity())
    assert read_environment(tmp_path / "env.json") == facts


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"\x00\xff\xfe\x80", "it is no text"),
        (b'{"tf": "2.1', "no complete JSON"),
        (b"[1, 2]", "one JSON object"),
        (b'{"tf": "2.1", "cpu": "x"}', "the key 'cpu' is not known"),
        (b'{"tf": ["2.1"]}', "'tf' must be a text"),
        (b'{"tf": true}', "'tf' must be a text"),
        (b'{"tf": NaN}', "not a number of JSON"),
        (b'{"system": "beos"}', "wrong value"),
        (b'{"system": "linux", "gpus": [{"name": 3}]}', "wrong value"),
        (b'{"system": "linux", "python": {"strange": 1}}', "does not know"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"tf": "' + b"2" * 1000 + b'"}', "1000 characters"),
    ],
)
def test_a_wrong_file_ends_in_one_sentence(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        read_environment(written(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_a_pipe_that_never_ends_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no regular file"):
        read_environment(tmp_path / "pipe")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no regular file"):
        read_environment(tmp_path)
    with pytest.raises(UsageError, match="there is no machine file"):
        read_environment(tmp_path / "none.json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
keys = st.sampled_from([*"tf python cuda gpu os system gpus driver environment child".split(), "?"])


@settings(max_examples=200, deadline=None)
@given(raw=st.dictionaries(keys, json_values, max_size=4))
def test_any_object_is_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, raw: object
) -> None:
    path = written(tmp_path_factory.getbasetemp(), json.dumps(raw).encode())
    with contextlib.suppress(UsageError):
        assert isinstance(read_environment(path), dict | MachineFacts)


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    with contextlib.suppress(UsageError):
        read_environment(written(tmp_path_factory.getbasetemp(), content))
