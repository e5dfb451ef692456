"""Limits and variables of the cluster's rules, each with its source."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tfdyno.core.base.errors import ToolError
from tfdyno.core.doctor.finding import Severity
from tfdyno.rules.tables import read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A setting of NCCL that is seldom meant."""

    name: str
    value: str
    """``*``: any."""
    severity: Severity
    why: str
    fix: str
    source: str


@functools.cache
def limits() -> dict[str, float]:
    """Return all limits by name, in the unit of their row; raises ``ToolError``."""
    rows = read_rows("cluster_limits.csv", ("name", "value", "unit", "why", "source"))
    try:
        return {row["name"]: float(row["value"]) for row in rows}
    except ValueError as error:
        raise ToolError("cluster_limits.csv is corrupt", why=str(error)) from None


@functools.cache
def variables() -> tuple[Variable, ...]:
    """Return settings of NCCL that are told of; raises ``ToolError``."""
    columns = ("name", "value", "severity", "why", "fix", "source")
    found = []
    for row in read_rows("nccl_variables.csv", columns):
        severity = row["severity"]
        if severity not in ("error", "warning", "note"):
            raise ToolError("nccl_variables.csv is corrupt", why=f"severity {severity}")
        found.append(Variable(**row))  # type: ignore[arg-type]
    return tuple(found)
