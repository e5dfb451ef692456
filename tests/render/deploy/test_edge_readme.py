"""The pages beside the model: what each file is for, and the way to a Jetson."""

from __future__ import annotations

from dataclasses import replace

from tests.view.edge_reports import REPORT, SCORES

from tfdyno.render.deploy.edge_readme import jetson_page, readme


def test_the_readme_tells_files_ports_and_times() -> None:
    page = readme(REPORT, {"run_model.py": "runs it"})
    assert "| `run_model.py` | runs it |" in page
    assert "| input 1 | `token_ids` | int32 [any, 16] |" in page
    assert "- 1 thread: 4.2 ms a call (4 ms to 5 ms) on A CPU" in page


def test_trtexec_gets_the_models_shapes() -> None:
    page = jetson_page(replace(REPORT, converted_from="net.py:model"))
    assert "tfdyno export net.py:model --to onnx" in page
    assert "--minShapes=image:1x28x28x1,token_ids:1x16" in page
    assert "--maxShapes=image:8x28x28x1,token_ids:8x16" in page


def test_a_model_of_fixed_shapes_needs_no_bounds() -> None:
    fixed = replace(REPORT, inputs=(replace(SCORES, open_axes=()),))
    assert "--minShapes" not in jetson_page(fixed)
