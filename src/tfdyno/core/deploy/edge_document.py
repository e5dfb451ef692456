"""The answer of ``tfdyno edge`` as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeDevice, EdgeReport


def edge_document(report: EdgeReport) -> dict[str, Any]:
    """Return all that is known, with the devices under ``devices``."""
    found: dict[str, Any] = to_builtins(report)
    found["devices"] = found.pop("verdicts")
    for device in found["devices"]:
        low, high = device["latency_s"]
        device["latency_s"] = {"low": low, "high": high}
    return found


def devices_document(devices: tuple[EdgeDevice, ...]) -> dict[str, Any]:
    """Return the catalogue."""
    return {"devices": to_builtins(devices)}
