"""Read every table of the catalogue, and say what each holds and which prices stay out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog import edge_devices, gpus, links, offers, price_sources, software
from tfdyno.catalog.offers import Rejected
from tfdyno.catalog.price_history import history_file
from tfdyno.catalog.tables import DATA, raw_rows, read_table
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.machine.knowledge import aged

if TYPE_CHECKING:
    from pathlib import Path

_ARCHITECTURE_COLUMNS = (
    "architecture",
    "compute_capability",
    "sm",
    "example_gpus",
    "first_cuda_with_native_support",
    "last_cuda_toolkit",
    "note",
    "source",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """One data file: where it is, how many rows it has, its newest and oldest date."""

    file: str
    path: str
    rows: int
    oldest: str
    newest: str
    sources: int
    """How many different sources its rows name."""
    fault: str = ""
    """Why a history of prices, which no answer rests on, cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReport:
    """The state of all tables."""

    tables: tuple[TableInfo, ...]
    rejected: tuple[Rejected, ...]
    """Price rows that stay out of the offers, with reasons."""
    aged: str = ""
    """Why the tables of TensorFlow's releases may be behind, in a sentence; empty: they are not."""


def check_data() -> DataReport:
    """Read every table strictly and judge every price.

    Raises:
        ToolError: A shipped table is corrupt; names the file and the line.
        UsageError: The same for a table of the user.
    """
    for gpu in (*gpus.all_gpus(), *gpus.all_slices()):
        software.wheel_support(gpu)
        links.default_link(gpu, 1)
    gpus.find(gpus.all_gpus()[0].slug)  # reads the aliases
    edge_devices.all_devices()
    price_sources.price_sources()
    price_sources.card_names()
    edge_devices.operations("litert-micro")
    read_table(DATA / "arch_cuda.csv", _ARCHITECTURE_COLUMNS, key=("sm",), ordered=False)
    return DataReport(tables=show_data(), rejected=offers.rejected_offers(), aged=aged(""))


def show_data() -> tuple[TableInfo, ...]:
    """Return what is in the shipped tables and in the user's own folder."""
    folders = (DATA, offers.data_dir())
    tables = [
        _info(path)
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.glob("*.csv"))
    ]
    return (*tables, _own_info()) if offers.own_file().exists() else tuple(tables)


def _own_info() -> TableInfo:
    machines = offers.own_offers()
    dates = sorted(one.priced_on for one in machines if one.priced_on)
    return TableInfo(
        file=offers.own_file().name,
        path=str(offers.own_file()),
        rows=len(machines),
        oldest=dates[0] if dates else "",
        newest=dates[-1] if dates else "",
        sources=1 if machines else 0,
    )


def _info(path: Path) -> TableInfo:
    fault = ""
    try:
        rows = raw_rows(path)
    except UsageError as error:
        if not path.name.startswith(history_file().stem):
            raise
        rows, fault = [], error.what
    dates = sorted(filter(None, (row.get("date", "") for row in rows)))
    return TableInfo(
        file=path.name,
        path=str(path),
        rows=len(rows),
        oldest=dates[0] if dates else "",
        newest=dates[-1] if dates else "",
        sources=len({row["source"] for row in rows if row.get("source")}),
        fault=fault,
    )
