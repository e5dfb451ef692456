"""Facts of a machine -> causes: what is wrong before any log is written.

Others use ``fine``, ``seen``; the rest is private.
"""

from __future__ import annotations

from collections.abc import Callable

from tfdyno.core.choose.software import Knowledge
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.rules.environment.cards import CARD_RULES
from tfdyno.rules.environment.driver import DRIVER_RULES
from tfdyno.rules.environment.libraries import LIBRARY_RULES
from tfdyno.rules.environment.packages import PACKAGE_RULES
from tfdyno.rules.match import Match

Rule = Callable[[MachineFacts, Knowledge], Match | None]
RULES: tuple[Rule, ...] = (*PACKAGE_RULES, *DRIVER_RULES, *CARD_RULES, *LIBRARY_RULES)


def environment_matches(facts: MachineFacts, knowledge: Knowledge) -> tuple[Match, ...]:
    """Return every cause that the facts of a machine show; unknown facts show nothing."""
    found = (rule(facts, knowledge) for rule in RULES)
    return tuple(match for match in found if match)
