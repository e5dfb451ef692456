"""The release of this package and its folder, known without the package's public names."""

from __future__ import annotations

from pathlib import Path

VERSION = "0.1.0"
PACKAGE = Path(__file__).parents[2]
"""The folder ``tfdyno``."""
