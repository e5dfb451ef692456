"""The script for a board is Python, and tells the ports; jobs/deploy/test_edge.py runs it."""

from __future__ import annotations

import ast
from dataclasses import replace

from tests.view.edge_reports import REPORT

from tfdyno.render.deploy.edge_python import run_script


def test_the_script_parses_and_names_the_ports() -> None:
    script = run_script(REPORT)
    tree = ast.parse(script)
    assert "image: int8 [any, 28, 28, 1]" in (ast.get_docstring(tree) or "")
    assert "SIGNATURE = 'serving_default'" in script
    assert "@" not in script
    assert "SIGNATURE = ''" in run_script(replace(REPORT, signature=""))


def test_the_script_needs_nothing_of_tfdyno() -> None:
    tree = ast.parse(run_script(REPORT))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    froms = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names == {"argparse", "statistics", "time", "numpy"}
    assert froms == {"pathlib", "ai_edge_litert.interpreter"}
