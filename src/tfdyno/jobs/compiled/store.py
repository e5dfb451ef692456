"""Which folder compiled programs are kept in, how large it may grow, and whether it may be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import parse_bytes
from tfdyno.store.cache import default_cache
from tfdyno.store.compiled.programs import LIMIT_BYTES, ProgramStore
from tfdyno.store.compiled.trust import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "TFDYNO_COMPILE_CACHE"
"""``off``, or how large the folder may grow: ``10GiB``."""
OFF = frozenset({"0", "off", "no", "false"})


def program_store(variables: Mapping[str, str]) -> ProgramStore:
    """Return the store of this user, bounded as ``SWITCH`` says.

    Raises:
        UsageError: That is no amount of memory.
    """
    said = variables.get(SWITCH, "").strip()
    limit = int(parse_bytes(said)) if said and not is_off(variables) else LIMIT_BYTES
    return ProgramStore(root=default_cache().programs, limit_bytes=limit)


def is_off(variables: Mapping[str, str]) -> bool:
    """Return whether the user wants no programs to be kept."""
    return variables.get(SWITCH, "").strip().lower() in OFF


def why_unused(store: ProgramStore, variables: Mapping[str, str]) -> str:
    """Return why nothing is taken from the folder or put there; empty where it is used."""
    if is_off(variables):
        return f"{SWITCH} is {variables[SWITCH].strip()}"
    if why := refusal(store.root):
        return f"{why}, and a program of another's is code of another's"
    return ""
