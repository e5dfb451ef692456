"""Lines of the user's own code."""

from __future__ import annotations

import json
import os

from tfdyno.process.own_lines import code_place, own_frame, own_place, place_of


def _here() -> str:
    return own_place()


def test_the_innermost_line_of_the_users_is_told() -> None:
    line = _here.__code__.co_firstlineno + 1
    assert _here() == f"test_own_lines.py:{line}"


def test_code_of_packages_and_of_no_file_has_no_place() -> None:
    assert code_place(json.dumps.__code__) == ""
    assert code_place(compile("1", "<string>", "exec")) == ""
    assert code_place(None) == ""
    assert code_place(_here.__code__).startswith("test_own_lines.py:")


def test_a_frame_of_the_users_is_found_from_within_a_package() -> None:
    frame = own_frame()
    assert frame is not None
    assert os.path.basename(frame.f_code.co_filename) == "test_own_lines.py"  # noqa: PTH119


def test_a_place_is_a_name_and_a_line() -> None:
    assert place_of("/some/where/train.py", 41) == "train.py:41"
