"""Which folder compiled programs are kept in, how large it may grow, and whether it may be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.units import parse_bytes
from tfdyno.store.cache import default_cache
from tfdyno.store.compiled.programs import LIMIT_BYTES, ProgramStore
from tfdyno.store.compiled.trust import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "TFDYNO_COMPILE_CACHE"
"""``off``, or how large the folder may grow: ``10GiB``."""
OFF = frozenset({"0", "off", "no", "false"})


def program_store(variables: Mapping[str, str]) -> ProgramStore:
    """Of this user, bounded as ``SWITCH`` says.

    Raises:
        UsageError: That is no amount of memory.
    """
    said = variables.get(SWITCH, "").strip().lower()
    limit = int(parse_bytes(said)) if said and said not in OFF else LIMIT_BYTES
    return ProgramStore(root=default_cache().programs, limit_bytes=limit)


def why_unused(store: ProgramStore, variables: Mapping[str, str]) -> str:
    """Why nothing is taken from the folder or put there; empty where it is used."""
    if variables.get(SWITCH, "").strip().lower() in OFF:
        return f"{SWITCH} is {variables[SWITCH].strip()}"
    if why := refusal(store.root):
        return f"{why}, and a program of another's is code of another's"
    return ""
