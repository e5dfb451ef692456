"""Facts of several nodes -> what keeps them from training together, or slows them down.

Others use ``network``, ``tables``; the rest is private.
"""

from __future__ import annotations

from tfdyno.rules.cluster.all import cluster_findings, in_order

__all__ = ["cluster_findings", "in_order"]
