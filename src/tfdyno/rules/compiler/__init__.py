"""Faults inside XLA: which are known, what tells of one, and the steps back from it."""

from tfdyno.rules.compiler.faults import Fault, all_faults, fault_in, short
from tfdyno.rules.compiler.ladder import next_step

__all__ = ["Fault", "all_faults", "fault_in", "next_step", "short"]
