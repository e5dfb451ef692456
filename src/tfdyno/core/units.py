"""Print and read quantities: the only place where a unit changes."""

from __future__ import annotations

import math
import re

from tfdyno.core.errors import UsageError

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BYTE_FACTORS: dict[str, float] = {
    "": 1,
    "b": 1,
    **{unit.lower(): 1024**power for power, unit in enumerate(_BINARY)},
    **{f"{prefix.lower()}b": 1000**power for power, prefix in enumerate(_DECIMAL) if prefix},
    **{prefix.lower(): 1000**power for power, prefix in enumerate(_DECIMAL) if prefix},
}
_SECOND_FACTORS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_QUANTITY = re.compile(r"\s*([-+]?[0-9][0-9_,]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ/$]*)\s*")


def significant(value: float, digits: int = 3) -> str:
    """Print a number with ``digits`` significant digits, thousands separated, never in powers.

    ``0.0123``, ``4.56``, ``78.9``, ``1,230``; integers below 10^digits keep no decimals.
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text and rounded == int(rounded) else text


def format_bytes(value_bytes: float, digits: int = 3) -> str:
    """Print bytes in binary units: ``23.6 GiB``."""
    power = 0
    while abs(value_bytes) >= 1024**power * 999.5 and power < len(_BINARY) - 1:
        power += 1
    return f"{significant(value_bytes / 1024**power, digits)} {_BINARY[power]}"


def format_si(value: float, unit: str, digits: int = 3) -> str:
    """Print a quantity with a decimal prefix: ``312 TFLOP/s``, ``2.04 TB/s``."""
    power = 0
    while abs(value) >= 1000**power * 999.5 and power < len(_DECIMAL) - 1:
        power += 1
    return f"{significant(value / 1000**power, digits)} {_DECIMAL[power]}{unit}"


def format_seconds(value_s: float, digits: int = 3) -> str:
    """Print a duration in the unit that reads best: ``312 µs``, ``41.5 ms``, ``2.3 h``."""
    size = abs(value_s)
    for limit, unit, factor in (
        (0.9995e-3, "µs", 1e-6),
        (0.9995, "ms", 1e-3),
        (119.95, "s", 1.0),
        (7197.0, "min", 60.0),
        (172740.0, "h", 3600.0),
    ):
        if size < limit:
            return f"{significant(value_s / factor, digits)} {unit}"
    return f"{significant(value_s / 86400, digits)} d"


def format_usd(value_usd: float) -> str:
    """Print money: cents below 100 dollars, three digits below a cent, thousands separated."""
    if 0 < abs(value_usd) < 0.01:
        return f"${value_usd:.2g}"
    return f"${value_usd:,.2f}" if abs(value_usd) < 100 else f"${value_usd:,.0f}"


def format_usd_per_h(value_usd_per_h: float) -> str:
    """Print an hourly price: ``$1.10/h``."""
    return f"${value_usd_per_h:,.2f}/h"


def format_count(value: float) -> str:
    """Print a whole number with thousands separated: ``25,636,712``."""
    return f"{value:,.0f}"


def parse_bytes(text: str) -> float:
    """Read ``24 GiB``, ``24GB``, ``512M`` or a bare number of bytes.

    Raises:
        UsageError: The text is not a number with a unit of bytes.
    """
    number, unit = _split(text, "memory")
    if unit.lower() not in _BYTE_FACTORS:
        raise UsageError(f"'{text}' is not an amount of memory", remedy="write it as 24GiB or 24GB")
    return number * _BYTE_FACTORS[unit.lower()]


def parse_seconds(text: str) -> float:
    """Read ``3.2 ms``, ``15 min``, ``2h`` or a bare number of seconds; raises ``UsageError``."""
    number, unit = _split(text, "time")
    if unit not in _SECOND_FACTORS:
        raise UsageError(f"'{text}' is not a time", remedy="write it as 30s, 15min or 2h")
    return number * _SECOND_FACTORS[unit]


def parse_usd(text: str) -> float:
    """Read ``$1.10``, ``$1.10/h`` or a bare number of dollars; raises ``UsageError``."""
    number, unit = _split(text.strip().removeprefix("$"), "money")
    if unit not in {"", "/h", "usd", "USD"}:
        raise UsageError(f"'{text}' is not an amount of money", remedy="write it as 20 or $20")
    return number


def _split(text: str, what: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UsageError(f"'{text}' is not an amount of {what}", remedy="start with a number")
    return float(match[1].replace(",", "").replace("_", "")), match[2]
