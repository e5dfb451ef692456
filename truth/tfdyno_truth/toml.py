"""Writes the time model's TOML file: values anew, everything else as it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tfdyno.core.choose.time_model import BucketWidth

WIDTHS = "[intervals]"


def rewrite(
    path: Path, *, version: str, values: Mapping[str, float], widths: Mapping[str, BucketWidth]
) -> None:
    """Put fitted values and interval widths into the file, atomically; comments stay."""
    text = path.read_text()
    for name, value in values.items():
        pattern = rf"(\[parameters\.{re.escape(name)}\]\nvalue = )\S+"
        text, found = re.subn(pattern, rf"\g<1>{float(f'{value:.5g}')!r}", text)
        if found != 1:
            raise ValueError(f"{path} has {found} entries for {name}")
    text = re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', text, count=1)
    text = text[: text.index(WIDTHS)] + WIDTHS + "\n"
    text += "".join(
        f'"{bucket}" = {{ log_half_width_ratio = {one.log_half_width_ratio}, '
        f"groups = {one.groups} }}\n"
        for bucket, one in widths.items()
    )
    write_atomic(path, text.encode())
