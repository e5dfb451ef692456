"""cli/answer: text or JSON, files first, an error last; only what is asked for is made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.cli.answer import Answer, noted, tell

if TYPE_CHECKING:
    from pathlib import Path


def refused(**_form: object) -> str:
    raise AssertionError("nobody asked for it")


def test_the_text_has_a_width_and_stands_between_head_and_tail(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "97")
    told = Answer(
        text=lambda width, colour: f"{width} {colour}", document=refused, head="a ", tail=" b",
        exit_code=4,
    )  # fmt: skip
    assert tell(told, as_json=False) == 4
    assert capsys.readouterr().out == "a 97 False b\n"


def test_colour_that_is_forced_is_kept_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    told = Answer(text=lambda colour, **_: f"\x1b[1m{colour}\x1b[0m", document=refused)
    assert tell(told, as_json=False) == 0
    assert capsys.readouterr().out == "\x1b[1mTrue\x1b[0m\n"


@pytest.mark.parametrize(("indent", "shown"), [(0, '{"a":[1]}\n'), (2, '{\n  "a": [\n    1\n')])
def test_json_is_the_document_alone(
    indent: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Answer(text=refused, document=lambda: {"a": [1]}, head="x", indent=indent)
    assert tell(told, as_json=True) == 0
    out = capsys.readouterr().out
    assert out.startswith(shown)
    assert json.loads(out) == {"a": [1]}


def test_only_files_that_are_named_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    told = Answer(
        text=lambda **_: "ü", document=refused,
        files=((page, lambda: "ü"), (None, refused), (data, lambda: b"{}")),
    )  # fmt: skip
    tell(told, as_json=False)
    assert (page.read_text(encoding="utf-8"), data.read_bytes()) == ("ü", b"{}")
    assert capsys.readouterr().out == "ü\n"


def test_an_error_is_raised_when_all_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    error = noted(KeyboardInterrupt(), "All of it is printed.")
    told = Answer(text=lambda **_: "so far", document=refused, error=error)
    with pytest.raises(KeyboardInterrupt) as raised:
        tell(told, as_json=False)
    assert raised.value.__notes__ == ["All of it is printed."]
    assert capsys.readouterr().out == "so far\n"
