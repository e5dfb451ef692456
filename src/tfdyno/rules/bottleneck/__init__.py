"""Facts of steps -> what holds them back: one primary cause, with fix and expected gain.

Others use ``tables``; the rest is private.
"""

from __future__ import annotations

from tfdyno.rules.bottleneck.growth import diagnose_growth
from tfdyno.rules.bottleneck.leak import leaking
from tfdyno.rules.bottleneck.rank import diagnose
from tfdyno.rules.bottleneck.tables import all_causes

__all__ = ["all_causes", "diagnose", "diagnose_growth", "leaking"]
