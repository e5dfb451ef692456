"""A text as TOML writes it; the standard library reads TOML and writes none."""

from __future__ import annotations

import json


def quoted(text: str) -> str:
    """Quote as TOML does: as JSON, but for one character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
