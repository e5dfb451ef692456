"""Programs of XLA that it prints when it fails, kept away from the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable

_BEGINS = re.compile(r"HloModule [\w.-]+|^hlo_module \{")
_GOES_ON = re.compile(
    r"\s*(?:ROOT |ENTRY )?%[\w.-]+ (?:=|\()|ENTRY |\}|HloModule |\s*$|\s+\[\[\{\{node|FileNames|"
    r"FunctionNames|FileLocations|StackFrames|\d+ [\"{]"
)


def without_programs(output: Callable[[str], object]) -> Callable[[str], None]:
    """Pass on lines, but none of the programs that XLA prints, which may be thousands.

    Args:
        output: Takes the other lines; one line stands for each program.
    """
    inside = False

    def hear(line: str) -> None:
        nonlocal inside
        if inside and _GOES_ON.match(line):
            return
        inside = bool(_BEGINS.search(line)) and line.lstrip().startswith(
            ("HloModule", "hlo_module")
        )
        output(say("(XLA printed its program; the log of the run has it)") if inside else line)

    return hear
