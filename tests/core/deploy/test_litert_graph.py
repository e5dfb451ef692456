"""A graph crosses from the child to its parent as JSON, and comes out the same."""

from __future__ import annotations

from pathlib import Path

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.deploy.litert_graph import LitertGraph
from tfdyno.runtime.litert.file import read

DATA = Path(__file__).parents[1].parent / "data" / "litert"


def test_a_graph_reads_back_as_it_was_written() -> None:
    graph = read(DATA / "rnn.tflite")
    again = from_json(to_json(graph), LitertGraph)
    assert again == graph
    assert again.tensor(again.inputs[0]).shape == (1, 12, 4)
    assert again.main is again.subgraphs[0]
