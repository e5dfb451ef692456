"""What the doctor cannot use ends in one sentence on stderr and exit code 2."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tfdyno.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a user, with files that are of no use."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "blank.log").write_text("\n \r\n\t\n")
    (tmp_path / "marks.log").write_bytes("\ufeff\n".encode("utf-16"))
    (tmp_path / "program").write_bytes(b"\x7fELF\x02\0\0\0" * 400)
    (tmp_path / "train.log").write_text("epoch 1\n")
    (tmp_path / "cut.json").write_text('{"tf": "2.20", "gpu"')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "strange.json").write_text('{"tensorfow": "2.20"}')
    (tmp_path / "kind.json").write_text('{"system": 7}')
    (tmp_path / "huge.json").write_text('{"gpu_count": 1' + "0" * 5000 + "}")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "words.json").write_text('{"tf": ["2.20"]}')
    (tmp_path / "broken.py").write_text("import tensorflow as tf\ntf.Session(\n")
    if os.name == "posix":
        os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What ``doctor`` said on stderr; checks that it is one sentence and the exit code 2."""
    code = main(["doctor", "--quiet", *words])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("empty", "empty is empty; give a log with at least one line."),
        ("blank.log", "blank.log is empty"),
        ("marks.log", "marks.log is empty"),
        ("program", "program is a binary file; give a log, which is text."),
        ("folder", "folder is a folder; give the log file in it."),
        ("tran.log", "there is no file tran.log; did you mean train.log?"),
        ("train.log/x", "there is no file train.log/x"),
        ("none/train.log", "there is no file none/train.log: there is no folder none."),
        ("a\0b", "cannot read a\0b: embedded null byte"),
        ("x" * 300, "File name too long"),
        ("", "--explain is empty"),
    ],
)
def test_what_is_no_log_is_named(
    log: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in said(capsys, "--explain", log)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_log_that_may_not_be_read_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.log").chmod(0)
    assert "cannot read train.log: Permission denied" in said(capsys, "--explain", "train.log")


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("cut.json", "cannot use cut.json as --env: it is no complete JSON"),
        ("list.json", "it must hold one JSON object; give a file of --save-env"),
        ("strange.json", "the key 'tensorfow' is not known"),
        ("kind.json", "kind.json has a wrong value: Expected `str`, got `int`"),
        ("huge.json", "is larger than any of a machine"),
        ("deep.json", "it is nested too deeply"),
        ("words.json", "'tf' must be a text such as"),
        ("empty", "it is empty"),
        ("program", "it is no text; give a file of --save-env"),
        ("folder", "it is no regular file"),
        ("kin.json", "there is no machine file kin.json; did you mean kind.json?"),
        ("", "--env is empty"),
    ],
)
def test_what_is_no_machine_file_is_named(
    file: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in said(capsys, "--env", file)


@pytest.mark.skipif(os.name != "posix", reason="named pipes are files on POSIX only")
def test_a_pipe_is_no_machine_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "it is no regular file" in said(capsys, "--env", "pipe")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("brken.py", "there is no file or folder brken.py; did you mean broken.py?"),
        ("program", "program was not read: it is binary"),
        ("broken.py", "broken.py was not read: line 2"),
        ("folder", "folder holds no Python file, notebook or requirements file"),
        ("", "--code is empty"),
    ],
)
def test_what_is_no_source_code_is_not_called_in_order(
    path: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in said(capsys, "--code", path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--explain", "train.log", "--code", "."), "give --explain or --code, not both"),
        (("--explain", "train.log", "--can-run"), "give --explain or --can-run, not both"),
        (("--can-run", "--matrix"), "give --can-run or --matrix, not both"),
        (("--json", "--share"), "give --json or --share, not both"),
        (("--json", "--fix-plan"), "give --json or --fix-plan, not both"),
        (("--env", "told.json", "--python", "x"), "give --env or --python, not both"),
        (("--matrix", "--quick"), "--quick has no use with --matrix; it examines this machine"),
        (("--code", ".", "--save-env", "x"), "--save-env has no use with --code"),
        (("--explain", "train.log", "--python", "x"), "it goes with --code"),
        (("--matrix", "--env", "x"), "it goes with --explain or --code"),
        (("--matrix", "--share"), "--share has no use with --matrix"),
        (("--tf", "2.20"), "--tf has no use alone; it goes with --can-run or --matrix"),
        (("--gpu", "t4"), "--gpu has no use alone"),
        (("--explain", "train.log", "--gpu", "t4"), "only where --workload names what ran"),
        (("--workload", "x.py"), "--workload has no use alone; it goes with --explain"),
        (("--explain", "train.log", "--workload", "x.py"), "the log shows no exhausted GPU memory"),
        (("--lang", "fr"), "language 'fr' is not one of en, zh"),
        (("--quick", "--python", "/no/python"), "--python /no/python cannot be run"),
        (("--quick", "--save-env", "folder"), "cannot write folder: it is a folder"),
        (("--quick", "--save-env", "none/x"), "cannot write none/x: No such file or directory"),
        (("--quick", "--save-env", ""), "--save-env is empty"),
        (("--can-run", "--gpu", "t4"), "--can-run needs a GPU and a release; for example"),
        (("--can-run", "--tf", "2.20"), "--can-run needs a GPU and a release"),
        (("--can-run", "--gpu", "rtx-5091", "--tf", "2.20"), "did you mean rtx-5090"),
        (("--can-run", "--gpu", "mi300x", "--tf", "2.20"), "tfdyno knows NVIDIA GPUs only"),
        (("--can-run", "--gpu", "t4", "--tf", "9.9"), "TensorFlow 9.9 is not known yet"),
        (("--can-run", "--gpu", "t4", "--tf", "1.15"), "name a release from 2.9"),
        (("--can-run", "--gpu", "t4", "--tf", "new"), "'new' is no TensorFlow release"),
        (("--can-run", "--gpu", "t4", "--tf", "2.20,"), "'' is no TensorFlow release"),
        (("--matrix", "--tf", "9.9"), "TensorFlow 9.9 is not known yet"),
        (("--matrix", "--gpu", "rtx-5091"), "there is no GPU 'rtx-5091'"),
    ],
)
def test_what_cannot_be_asked_together_is_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in said(capsys, *words)


def test_a_refused_request_leaves_an_older_file_alone(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / "facts.json"
    path.write_text(json.dumps({"tf": "2.20"}))
    said(capsys, "--quick", "--python", "/no/python", "--save-env", str(path))
    assert json.loads(path.read_text()) == {"tf": "2.20"}
