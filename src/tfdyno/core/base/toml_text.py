"""A text as TOML writes it; the standard library reads TOML and writes none."""

from __future__ import annotations

import json


def quoted(text: str) -> str:
    """A basic string of TOML: JSON's escapes are TOML's, but for one that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
