"""Folders that only one machine has are hidden; those that every machine shares stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.probe.machine.redact_paths import hide_paths

NAME = st.text("abcdefghijklmnop_-", min_size=3, max_size=12)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/home/ann/x/train.py", "~/…"),
        ("/root/x", "~/…"),
        ("/data/merger/libfoo.so.1", "<path>/libfoo.so.1"),
        ("/tmp/run7/x.py", "/tmp/…"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
        ("/opt/nvidia/lib", "/opt/nvidia/lib"),
        ("/opt/acme/lib", "<path>/lib"),
        (r"C:\Windows\System32\nvcuda.dll", r"C:\Windows\System32\nvcuda.dll"),
        ("/job:worker/task:0/device:GPU:0", "/job:worker/task:0/device:GPU:0"),
        ("and/or", "and/or"),
    ],
)  # fmt: skip
def test_a_path_is_hidden_as_far_as_it_is_private(text: str, hidden: str) -> None:
    assert hide_paths(text, ()) == hidden


def test_an_unusual_home_is_known_by_its_name() -> None:
    assert hide_paths("/srv/people/ann/x.py and /srv/people/anna", ("/srv/people/ann",)) == (
        "~/… and <path>/…"
    )


@given(first=NAME, second=NAME)
def test_no_folder_below_a_home_survives(first: str, second: str) -> None:
    secret = f"q{first}q"
    for text in (f"/home/{secret}/{secret}/{second}.py", rf"C:\Users\{secret}\{secret}\a.py"):
        assert secret not in hide_paths(f"see {text}, line 3", ())
