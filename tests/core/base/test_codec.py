"""What is written reads back; what is unknown, of a wrong type or no JSON is refused in words."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base import codec
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.interval import Interval, Scaled
from tfdyno.core.choose.program import Buffer
from tfdyno.core.choose.workload import Workload

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(NUMBERS, min_size=3, max_size=3).map(sorted))
def test_an_interval_reads_back_as_it_was(numbers: list[float]) -> None:
    low, best, high = numbers
    interval = Interval(low=low, best=best, high=high)
    assert codec.from_json(codec.to_json(interval), Interval) == interval


@given(fixed=NUMBERS, name=st.text(), shape=st.lists(st.integers(0, 2**31), max_size=4).map(tuple))
def test_a_nested_noun_reads_back_as_it_was(
    fixed: float, name: str, shape: tuple[int, ...]
) -> None:
    buffer = Buffer(
        name=name, layer="", part="weights", dtype="f32", shape=shape, bytes=Scaled(fixed=fixed)
    )
    assert codec.from_json(codec.to_json(buffer, indent=2), Buffer) == buffer


def test_json_is_compact_unless_an_indent_is_asked_for() -> None:
    scaled = Scaled(fixed=1.0, per_sample=2.0)
    assert codec.to_json(scaled) == b'{"fixed":1.0,"per_sample":2.0}'
    assert codec.to_json(scaled, indent=2) == b'{\n  "fixed": 1.0,\n  "per_sample": 2.0\n}'


def test_builtins_are_made_of_dictionaries_and_lists() -> None:
    workload = Workload(reference="a.py", kind="script", input_shapes=((224, 224, 3),))
    made = codec.to_builtins(workload)
    assert made["reference"] == "a.py"
    assert made["input_shapes"] == ((224, 224, 3),)


def test_text_that_is_no_json_is_refused_with_the_name_of_the_file() -> None:
    with pytest.raises(UsageError, match=r"^answer\.json is not valid JSON: .*malformed"):
        codec.from_json(b"{low: 1}", Interval, where="answer.json")


def test_a_wrong_type_is_told_with_its_path() -> None:
    with pytest.raises(UsageError, match=r"^JSON has a wrong value: .*got `str`.*\$\.best"):
        codec.from_json(b'{"low": 1, "best": "2", "high": 3}', Interval)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(UsageError, match="missing required field `high`"):
        codec.from_builtins({"low": 1, "best": 2}, Interval)


def test_what_a_noun_itself_refuses_is_told_as_it_says_it() -> None:
    with pytest.raises(UsageError, match=r"need low <= best <= high, got 3\.0, 2\.0, 1\.0"):
        codec.from_builtins({"low": 3.0, "best": 2.0, "high": 1.0}, Interval)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"fixed": 1.0, "slope": 2.0}, r"\$\.slope"),
        ([{"fixed": 1.0}, {"slope": 2.0}], r"\$\[1\]\.slope"),
        ([{"fixed": 1.0, "per": {"deep": 1}}], r"\$\[0\]\.per"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path(raw: object, path: str) -> None:
    kind: type = list[Scaled] if isinstance(raw, list) else Scaled
    with pytest.raises(UsageError, match=rf"has a key that tfdyno does not know: {path}\.$"):
        codec.from_builtins(raw, kind)


def test_an_unknown_key_deep_inside_is_refused_too() -> None:
    buffer = {
        "name": "a", "layer": "", "part": "inputs", "dtype": "f32", "shape": [1],
        "bytes": {"fixed": 4.0, "per_batch": 1.0},
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"\$\.bytes\.per_batch"):
        codec.from_builtins(buffer, Buffer)


def test_toml_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes('source = "Müller, µs – ×"\n'.encode())
    source = """
import locale, sys, pathlib
from tfdyno.core.base.codec import read_toml
assert locale.getencoding() != "UTF-8"
print(ascii(read_toml(pathlib.Path(sys.argv[1]))["source"]))
"""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", source, str(path)],
        capture_output=True, text=True, check=True, env={**os.environ, **ascii_only},
    )  # fmt: skip
    assert done.stdout.strip() == ascii("Müller, µs – ×")


def test_toml_that_cannot_be_read_is_told_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml does not exist"):
        codec.read_toml(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("a = 1\nb = \n")
    with pytest.raises(UsageError, match=r"broken\.toml is not valid TOML: .*line 2"):
        codec.read_toml(broken)
    broken.write_bytes(b"a = '\xff'\n")
    with pytest.raises(UsageError, match=r"broken\.toml is not valid TOML: .*utf-8"):
        codec.read_toml(broken)
    with pytest.raises(UsageError, match=r"^cannot read .*: Is a directory\.$"):
        codec.read_toml(tmp_path)  # a folder


def test_a_file_is_replaced_whole_and_no_other_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    codec.write_atomic(path, b"old")
    codec.write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_written_file_has_the_mode_that_any_program_would_give_it(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        codec.write_atomic(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_failed_write_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        codec.write_atomic(path, "no bytes")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UsageError, match=r"^cannot write .*a: it is a folder\.$"):
        codec.write_atomic(tmp_path / "a", b"new")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot write .*x\.json: No such file or directory\.$"):
        codec.write_atomic(tmp_path / "none" / "x.json", b"")


def test_a_full_disk_is_told_with_the_file_and_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    said = r"^cannot write .*/a: No space left on device\.$"

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    for where, name in ((Path, "replace"), (tempfile, "mkstemp")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, full)
            with pytest.raises(ToolError, match=said):
                codec.write_atomic(path, b"new")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_a_name_that_is_too_long_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="File name too long"):
        codec.write_atomic(tmp_path / ("x" * 300), b"")


@pytest.mark.parametrize(
    ("text", "said"),
    [("a = " + "9" * 5000, "integer string"), ("a = " + "[" * 3000, "nested too deep")],
)
def test_toml_that_python_cannot_hold_is_told(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UsageError, match=rf"a\.toml is not valid TOML: .*{said}"):
        codec.read_toml(tmp_path / "a.toml")


AT_ONCE = """
import sys, threading
sys.setswitchinterval(1e-6)
from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.memory_map import MemoryMap
from tfdyno.core.choose.program import Program
from tfdyno.core.choose.workload import Trace
start = threading.Barrier(12)
def read():
    start.wait()
    for kind in (Trace, Program, Estimate, MemoryMap):
        try:
            from_builtins({"unknown": 1, "kernels": [], "gpu": "x"}, kind)
        except UsageError:
            pass
threads = [threading.Thread(target=read) for _ in range(12)]
for one in threads: one.start()
for one in threads: one.join()
"""


def test_threads_that_read_a_class_for_the_first_time_at_once_do_not_crash() -> None:
    """Without the lock of ``learned`` about half of such processes died of a segmentation fault."""
    codes = [subprocess.run([sys.executable, "-c", AT_ONCE], check=False).returncode
             for _ in range(6)]  # fmt: skip
    assert codes == [0] * 6


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "a.json does not exist."),
        (b"{", "a.json is not valid JSON: Expecting property name"),
        (b"\xff{}", "a.json is not valid JSON: "),
        (b"[" * 100_000, "a.json is not valid JSON: it is nested too deep."),
        (b"[1]", "a.json holds no object of JSON: it is a list."),
    ],
)
def test_a_file_that_holds_no_object_of_json_is_one_sentence(
    tmp_path: Path, text: bytes | None, told: str
) -> None:
    if text is not None:
        (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(UsageError) as error:
        codec.read_json(tmp_path / "a.json")
    assert told in str(error.value)


def test_an_object_of_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, null]}')
    assert codec.read_json(tmp_path / "a.json") == {"a": [1, None]}
