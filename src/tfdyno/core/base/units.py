"""Units and their factors; quantities printed and read."""

from __future__ import annotations

import math
import re

from tfdyno.core.base.errors import UsageError

MIB, GIB = 1 << 20, 1 << 30
"""Bytes."""
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BYTE_FACTORS: dict[str, float] = {
    "": 1,
    "b": 1,
    **{unit.lower(): 1024**power for power, unit in enumerate(_BINARY)},
    **{f"{prefix.lower()}b": 1000**power for power, prefix in enumerate(_DECIMAL) if prefix},
    **{prefix.lower(): 1000**power for power, prefix in enumerate(_DECIMAL) if prefix},
}
_QUANTITY = re.compile(r"\s*([-+]?[0-9][0-9_,]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]*)\s*")


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


def parse_bytes(text: str) -> float:
    """Read ``24 GiB``, ``24GB``, ``512M`` or a bare number of bytes.

    Raises:
        UsageError: The text is not a number with a unit of bytes.
    """
    match = _QUANTITY.fullmatch(text)
    unit = match[2].lower() if match else ""
    if not match or unit not in _BYTE_FACTORS:
        raise UsageError(f"'{text}' is not an amount of memory", remedy="write it as 24GiB or 24GB")
    return float(match[1].replace(",", "").replace("_", "")) * _BYTE_FACTORS[unit]
