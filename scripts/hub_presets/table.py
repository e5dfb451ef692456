"""The table of the catalogue as text, and its sign for None."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from tfdyno.core.base.toml_text import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Value

    Rows = dict[str, list[dict[str, Value]]]
    """Family to its configurations."""

_HEAD = """\
# Presets of keras-hub and what their backbones are built with: scripts/presets writes this file.
# The count of each configuration is proven: keras-hub of the version below built it, and it has as
# many parameters as keras-hub tells in models/FAMILY/FAMILY_presets.py; parameter_count is that of
# the backbone. What a count does not show is as sure as its source: heads of one width, rotary
# positions, windows, soft caps, dropout, image sizes.

keras_hub = "{version}"
"""


def written(rows: Rows, left_out: Mapping[str, list[str]], version: str) -> str:
    """Write the table: why presets are left out, then each family's configurations."""
    lines = [_HEAD.format(version=version), "[left_out]"]
    for reason, names in left_out.items():
        listed = textwrap.fill(", ".join(map(quoted, names)), 100, break_on_hyphens=False)
        lines += [f"{quoted(reason)} = [", textwrap.indent(listed, "    "), "]"]
    for family, sizes in sorted(rows.items()):
        for size in sizes:
            lines += ["", f"[[family.{family}]]"]
            lines += [f"{key} = {_toml(value, key=key)}" for key, value in size.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Value, *, key: str = "") -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{name} = {_toml(value[name])}" for name in sorted(value))
        return f"{{ {inside} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if key == "parameter_count":
        return f"{value:_}"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
