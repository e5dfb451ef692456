"""How Triton is given a model; Triton itself is started by test_child.py."""

from __future__ import annotations

import json
import os
import socket
import sys
import sysconfig
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.messages.wire import encode
from tfdyno.serving.front.wire import FAULT
from tfdyno.serving.model import binding as serve_binding
from tfdyno.serving.model.saved import Arrays, Signature, Tensor

if TYPE_CHECKING:
    import pytest


@dataclass
class Asked:
    """A request as PyTriton hands it over."""

    data: Arrays


def doubling(calls: list[int]) -> Signature:
    def call(inputs: Arrays) -> Arrays:
        calls.append(len(inputs["x"]))
        return {"y": 2 * inputs["x"]}

    return Signature(
        name="serving_default",
        inputs=(Tensor(name="x", dtype="float32", shape=(None, 1)),),
        outputs=(Tensor(name="y", dtype="float32", shape=(None, 1)),),
        call=call,
    )


def asked(*values: float) -> Asked:
    return Asked({"x": np.array([[value] for value in values], dtype=np.float32)})


def test_requests_together_are_one_call_and_each_gets_its_own_rows() -> None:
    calls: list[int] = []
    answer = serve_binding._answering(doubling(calls))
    first, second, third = answer([asked(1, 2), asked(3), asked(4, 5, 6)])
    assert calls == [6]
    assert [first["y"].ravel().tolist(), second["y"].ravel().tolist()] == [[2, 4], [6]]
    assert third["y"].ravel().tolist() == [8, 10, 12]


def test_what_cannot_be_put_together_is_called_one_by_one() -> None:
    calls: list[int] = []
    answer = serve_binding._answering(replace(doubling(calls), unbatched="its rows are mixed"))
    assert [one["y"].ravel().tolist() for one in answer([asked(1), asked(2, 3)])] == [[2], [4, 6]]
    assert calls == [1, 2]


def picky(calls: list[int]) -> Signature:
    def call(inputs: Arrays) -> Arrays:
        if (bad := inputs["x"][inputs["x"] < 0]).size:
            raise IndexError(
                f"Graph execution error:\n\nDetected at node a\nindex {bad[0]:g} is low"
            )
        return doubling(calls).call(inputs)

    return replace(doubling(calls), call=call)


LOW = b"IndexError: index -7 is low"


def test_what_fails_in_the_model_is_answered_with_one_line_that_says_why() -> None:
    [answer] = serve_binding._answering(picky([]))([asked(1, -7)])
    assert answer[FAULT].tolist() == [[LOW], [LOW]]
    assert answer["y"].shape == (2, 1)


def test_what_fails_without_a_batch_has_one_reason() -> None:
    [answer] = serve_binding._answering(replace(picky([]), unbatched="it is fixed"))([asked(1, -7)])
    assert answer[FAULT].tolist() == [[LOW]]


def test_of_requests_together_only_the_one_that_fails_is_told_why() -> None:
    calls: list[int] = []
    answer = serve_binding._answering(picky(calls))
    first, second, third = answer([asked(1, 2), asked(3, -7), asked(4)])
    assert [first["y"].ravel().tolist(), third["y"].ravel().tolist()] == [[2, 4], [8]]
    assert FAULT not in first
    assert FAULT not in third
    assert second[FAULT].tolist() == [[LOW], [LOW]]
    assert calls == [2, 1]  # after the call on all of them had failed


def test_a_signature_is_told_with_its_open_sizes() -> None:
    described = serve_binding.describe(doubling([]), "net")
    assert json.loads(encode(described)) == {
        "triton_model": "net",
        "inputs": [{"name": "x", "dtype": "float32", "shape": [None, 1]}],
        "outputs": [{"name": "y", "dtype": "float32", "shape": [None, 1]}],
        "batched": True,
        "call_s": 0.0,
    }


def test_a_port_where_nobody_listens_does_not_answer() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert not serve_binding._answers(f"127.0.0.1:{taken.getsockname()[1]}")


def test_the_log_of_triton_says_why_it_did_not_start() -> None:
    class Logged:
        def logs(self) -> str:
            return "I1 all well\nE2 a.cc:1] error: a\nE3 b.cc:2] \"failed to load 'net': no\"\n"

    class Server:
        _triton_server = Logged()

    assert serve_binding._why(Server()) == "failed to load 'net': no"


def test_triton_finds_the_library_of_the_interpreter_first(monkeypatch: pytest.MonkeyPatch) -> None:
    named: dict[str, Any] = {"LIBDIR": "/own/lib"}
    monkeypatch.setattr(sysconfig, "get_config_var", named.get)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/other/lib")
    serve_binding._let_triton_find_python()
    assert os.environ["LD_LIBRARY_PATH"] == "/own/lib:/other/lib"
    assert "pytriton" not in sys.modules
