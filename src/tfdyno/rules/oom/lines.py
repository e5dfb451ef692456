"""Lines that TensorFlow and XLA print when memory runs out, as regular expressions.

Formats: the dump of ``BFCAllocator`` from TensorFlow 0.12 to 2.21, the list that
``report_tensor_allocations_upon_oom`` adds, XLA's ``BufferAssignment`` report on a GPU and its
``Largest program allocations`` on a TPU.
"""

from __future__ import annotations

import re

MARKERS = (
    b"bfc_allocator",
    b"MaxInUse",
    b"OOM when",
    b"ut of memory",
    b"BufferAssignment",
    b"Peak buffers",
    b"Chunks of size",
    b"Largest program allocations",
    b"Current usage from device",
)
"""A block of a log without any of these holds no report."""
STATS = {
    "Limit": "limit_bytes",
    "InUse": "in_use_bytes",
    "MaxInUse": "peak_bytes",
    "NumAllocs": "allocation_count",
    "MaxAllocSize": "largest_allocation_bytes",
}
XLA_PARTS = {
    "parameter": "parameter_bytes",
    "maybe_live_out": "output_bytes",
    "preallocated temp": "temporary_bytes",
    "total": "program_bytes",
}
BUFFER_LINES = {
    "size": "size",
    "operator": "operator",
    "xla label": "label",
    "shape": "shape",
    "entry parameter subshape": "shape",
}
ASKED = re.compile(
    r"(?:Allocator \((?P<allocator>\w+)\) )?ran out of memory trying to allocate "
    r"(?P<amount>[\d.]+\s?[KMGT]?i?B)(?:\s*\(rounded to (?P<exact>\d+)\))?"
    r"(?:\s*requested by op (?P<op>[^\s\"]+))?",
    re.IGNORECASE,
)
TENSOR = re.compile(
    r"OOM when allocating (?:temporary )?tensor (?:with|of) shape\s*\[(?P<shape>[^\]]*)\]"
    r"(?: and type (?P<dtype>\w+))?(?: on (?P<device>\S+))?(?: by allocator (?P<allocator>\w+))?"
)
OPERATION = re.compile(r"\[Op:(\w+)\]|\[\[\{\{node ([^}\s]+)\}\}\]\]|\[\[[Nn]ode:? ?([^\s=\[\]]+)")
DUMP = re.compile(r"BFCAllocator dump for (.*)|Bin \(256\):|BFCAllocator dump for")
RULER = re.compile("==========")
CHUNK = re.compile(
    r"\b(?P<state>Chunk|InUse|Free)\s+at (?:0x)?[0-9a-fA-F]+ (?:next \d+ )?of size (?P<size>\d+)"
    r"(?: by op (?P<op>\S+) action_count \d+ step (?P<step>\d+))?"
)
SUMMARY = re.compile(r"(?<!\d)(\d{1,18}) Chunks of size (\d{1,18}) totalling")
STAT = re.compile(
    r"(?:^|[\s|\]])(Limit|InUse|MaxInUse|NumAllocs|MaxAllocSize):\s+([\d.]+(?:[KMGT]?i?B)?)\s*$"
)
POOL = re.compile(
    r"(?:Total (?:bytes|size) in pool|total_region_allocated_bytes_): ([\d.]+(?:[KMGT]?i?B)?)"
)
REGION = re.compile(r"Next region of size (\d+)")
USAGE = re.compile(r"^\s*([\d.]+[KMGT]?i?B) from (\S.*)$")
XLA_ASKED = re.compile(r"ut of memory while trying to allocate ([\d.,]+) ?(bytes|[KMGT]i?B)")
HBM = re.compile(r"Used ([\d.]+[KMGT]) of ([\d.]+[KMGT]) hbm")
XLA_PART = re.compile(
    r"\b(parameter|maybe_live_out|preallocated temp|total) allocation:\s+([\d.]+[KMGT]?i?B)"
)
BUFFER = re.compile(
    r"(?:^|\s|\d\\?\.\s)(Size|Operator|XLA [Ll]abel|Shape|Entry Parameter Subshape): (.+)$"
)
