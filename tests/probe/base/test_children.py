"""Children that ask what may crash or hang: what they told is kept, whatever their end."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.messages.nvidia import CardTold, InitTold, NvmlTold
from tfdyno.probe.base import children
from tfdyno.probe.base.children import Answers, Child, start
from tfdyno.probe.base.host import Host

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import json, os, sys, time\ndef tell(**a): print('tfdyno:' + json.dumps(a), flush=True)\n"
LIMIT_S = 60.0


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Writes a child and starts it as the package's own are started."""
    monkeypatch.setattr(children, "FOLDER", tmp_path)

    def begin(body: str, **environment: str) -> Child:
        (tmp_path / "child.py").write_text(HEAD + body)
        host = Host(environment={**os.environ, **environment}, python=sys.executable, is_live=True)
        return start("the test", "child.py", host, {"names": ["a", "b"]})

    return begin


def test_answers_are_found_between_what_libraries_print(script: object) -> None:
    child = script(  # type: ignore[operator]
        "print('a banner')\ntell(kind='card', name='0')\nprint('tfdyno:{half a')\n"
        "tell(kind='card', name='1')\n"
        "tell(kind='init', error=' '.join(json.loads(sys.argv[1])['names']))\n"
    )
    answers = child.answers(LIMIT_S)
    assert (answers.started, answers.reason) == (True, "")
    assert [one.name for one in answers.every(CardTold)] == ["0", "1"]
    assert answers.one(InitTold) == InitTold(error="a b")
    assert answers.one(NvmlTold) is None


@pytest.mark.parametrize("line", ["[1]", '{"kind": "other"}', '{"kind": "card", "colour": "red"}'])
def test_an_answer_that_nobody_understands_is_told(script: object, line: str) -> None:
    child = script(f"print('tfdyno:{line}')\ntell(kind='card', name='1')\n")  # type: ignore[operator]
    answers = child.answers(LIMIT_S)
    assert answers.reason == f"the test told what nobody here understands: {line}"
    assert [one.name for one in answers.every(CardTold)] == ["1"]


def test_a_crash_keeps_what_was_told_before(script: object) -> None:
    child = script("tell(kind='card', name='0')\nos.abort()\n")  # type: ignore[operator]
    answers = child.answers(LIMIT_S)
    assert [one.name for one in answers.every(CardTold)] == ["0"]
    assert answers.reason.startswith("the test ended with exit code ")


def test_the_last_line_of_an_error_is_the_reason(script: object) -> None:
    child = script("raise OSError('no such library')\n")  # type: ignore[operator]
    assert child.answers(LIMIT_S).reason == (
        "the test ended with exit code 1: OSError: no such library"
    )


def test_a_child_that_hangs_is_ended_and_its_words_are_kept(script: object) -> None:
    child = script("tell(kind='card', name='0')\ntime.sleep(600)\n")  # type: ignore[operator]
    answers = child.answers(6.0)
    assert answers.reason == "the test did not answer within 6 s"
    assert [one.name for one in answers.every(CardTold)] == ["0"]


def test_a_stopped_child_is_gone(script: object) -> None:
    child = script("time.sleep(600)\n")  # type: ignore[operator]
    child.stop()
    assert child.process.returncode not in (None, 0)
    child.stop()  # a second time does nothing


def test_hidden_cards_are_shown_to_the_child(script: object) -> None:
    body = "tell(kind='init', error=os.environ.get('CUDA_VISIBLE_DEVICES', 'unset'))\n"
    child = script(body, CUDA_VISIBLE_DEVICES="-1")  # type: ignore[operator]
    assert child.answers(LIMIT_S).one(InitTold) == InitTold(error="unset")


def test_a_child_that_was_not_started_gives_the_reason() -> None:
    assert Child(name="x", reason="no device").answers(1.0) == Answers(reason="no device")
