"""Faults inside XLA: which are known, what tells of one, and the steps back from it.

Others use nothing by name; the rest is private.
"""

from tfdyno.rules.compiler.faults import Fault, all_faults, fault_in, short
from tfdyno.rules.compiler.foreseen import CompilePlace, faults_at, patterns_of, warning_of
from tfdyno.rules.compiler.ladder import next_step

__all__ = [
    "CompilePlace",
    "Fault",
    "all_faults",
    "fault_in",
    "faults_at",
    "next_step",
    "patterns_of",
    "short",
    "warning_of",
]  # fmt: skip
