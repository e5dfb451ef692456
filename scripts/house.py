"""The picture of the source tree in CONTRIBUTING: every folder with what its docstring says."""

from __future__ import annotations

import ast
from pathlib import Path

PAGE = Path("CONTRIBUTING.md")
SOURCE = Path("src/tfdyno")
BEGIN, END = "<!-- tree: scripts/reference writes it -->", "<!-- end of the tree -->"


def pages() -> dict[Path, str]:
    """``CONTRIBUTING.md`` with the tree as it is."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    return {PAGE: f"{before}{begin}\n{_tree()}\n{end}{after}"}


def _tree() -> str:
    lines = ["", "| folder | files | what is in it |", "| --- | ---: | --- |"]
    for folder in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        files = len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        name = folder.relative_to(SOURCE).as_posix()
        if folder != SOURCE and (files or not name.count("/")):
            lines.append(f"| `{name}` | {files or ''} | {_first_line(folder)} |")
    return "\n".join([*lines, ""])


def _first_line(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return text.partition("\n")[0].replace("``", "`")
