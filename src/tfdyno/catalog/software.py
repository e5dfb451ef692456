"""How the official TensorFlow wheels run on a GPU: machine code, JIT, or not at all."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from tfdyno.catalog.releases import cuda_drivers, known_releases, release_of
from tfdyno.catalog.tables import DATA, Row, read_table
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.software import Support, WheelSupport

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu

NEWEST = "2.21"
"""The newest that is out; the tables may know a candidate after it."""
OLDEST = "2.9"
"""Older releases cannot be traced, so nothing is said of them."""
_CARD_COLUMNS = {
    "3.7": "K80_3.7",
    "5.0": "GTX9_5.2",
    "5.2": "GTX9_5.2",
    "6.0": "P100_6.0",
    "6.1": "GTX10_6.1",
    "7.0": "V100_7.0",
    "7.5": "T4_7.5",
    "8.0": "A100_8.0",
    "8.6": "RTX30_8.6",
    "8.9": "RTX40_L4_8.9",
    "9.0": "H100_9.0",
    "10.0": "B200_10.0",
    "10.3": "B200_10.0",
    "12.0": "RTX50_12.0",
    "12.1": "RTX50_12.0",
}
"""Compute capability to the column of ``wheel_kernels.csv``.

5.0 and 5.2 find the same code, as do 10.0 and 10.3, and 12.0 and 12.1.
"""
_WHEEL_COLUMNS = (
    "wheel",
    "sass",
    "fatbins_library",
    "ptx_library",
    "fatbins_elementwise_without_top_sass",
    "ptx_elementwise",
    "fatbins_ptx_only_arch_gated",
    "driver_needed_when_ptx_is_jitted_linux",
    "driver_for_H100_linux",
    *dict.fromkeys(_CARD_COLUMNS.values()),
    "source",
)
_VERSION = re.compile(r"\d+(?:\.\d+)+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """What one wheel holds for one GPU."""

    release: str
    library: str
    elementwise: str
    driver: str
    inferred: bool = False

    @property
    def verdict(self) -> Support:
        kinds = {self.library, self.elementwise}
        if "NO" in kinds:
            return "cannot"
        return "jit" if "jit" in kinds else "native"


def wheel_support(gpu: Gpu, tensorflow: str = NEWEST) -> WheelSupport:
    """Return how the official Linux wheel of a TensorFlow release runs on a GPU.

    A wheel has library kernels and, from 2.10 on, generated elementwise kernels. The verdict is
    ``native`` when both are machine code for the card, ``jit`` when the driver must compile some
    of them at first use, ``cannot`` when some have neither code nor PTX that the card accepts
    (PTX for sm_90a is refused by every other card), ``unknown`` for releases nobody took apart.

    Args:
        gpu: A card or a MIG slice of one.
        tensorflow: Release, ``2.21`` or ``2.21.0``; one between two measured wheels that agree is
            inferred from them, and the sentence says so.

    Raises:
        ToolError: A shipped table is corrupt.

    Source:
        ``wheel_kernels.csv``: official wheels unpacked, their CUDA fat binaries listed.
    """
    release = _minor(tensorflow)
    slug = gpu.slug.partition(":")[0]
    exception = _exceptions().get(slug)
    if exception is not None:
        return _support(gpu, release, "cannot", detail=exception[0], source=exception[1])
    cells = _cells(gpu)
    if not cells:
        what = f"no wheel was examined for compute capability {gpu.compute_capability}"
        return _support(gpu, release, "unknown", detail=what, source="wheel_kernels.csv")
    cell = _cell(cells, release)
    smallest_runnable = _from_here_on(gpu, cells, {"native", "jit"})
    return _support(
        gpu,
        release,
        cell.verdict if cell else "unknown",
        cell=cell,
        smallest_native=_from_here_on(gpu, cells, {"native"}),
        smallest_runnable=smallest_runnable,
        driver=_driver(gpu, cell) if cell and cell.verdict != "cannot" else "",
        detail=_sentence(gpu, release, cell, smallest_runnable) if cell else "",
        source="wheel_kernels.csv; compat.csv; cuda_driver.csv",
    )


def check_release(tensorflow: str) -> None:
    """Refuse what is no TensorFlow release, or one that is too old or not known yet.

    Raises:
        UsageError: The release is older than ``OLDEST`` or newer than the tables.
    """
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", tensorflow):
        raise UsageError(f"'{tensorflow}' is no TensorFlow release", remedy="write it as 2.21")
    release = _key(_minor(tensorflow))
    known = known_releases()
    last, date = known[-1], max(one.date for one in known)
    newest = last.tensorflow
    if not _key(OLDEST) <= release <= _key(newest):
        is_old = release < _key(OLDEST)
        raise UsageError(
            f"TensorFlow {tensorflow} is {'too old' if is_old else 'not known yet'}",
            why="" if is_old else f"the tables are of {date} and end with {last.last_wheel}",
            remedy=f"name a release from {OLDEST} to {newest}",
        )


def releases() -> tuple[str, ...]:
    """Return the TensorFlow releases whose wheels were taken apart, oldest first."""
    return tuple(_minor(row.text("wheel").split("-")[1]) for row in _wheel_rows())


def _support(
    gpu: Gpu,
    release: str,
    verdict: Support,
    *,
    source: str,
    detail: str = "",
    cell: _Cell | None = None,
    smallest_native: str = "",
    smallest_runnable: str = "",
    driver: str = "",
) -> WheelSupport:
    return WheelSupport(
        gpu=gpu.slug,
        tensorflow=release,
        verdict=verdict,
        library_kernels=cell.library if cell else "-",
        elementwise_kernels=cell.elementwise if cell else "-",
        smallest_native=smallest_native,
        smallest_runnable=smallest_runnable,
        has_old_libraries=verdict == "jit" and _libraries_too_old(gpu, release),
        driver_linux=driver,
        detail=detail or f"the wheel of TensorFlow {release} was not examined",
        source=source,
    )


def _sentence(gpu: Gpu, release: str, cell: _Cell, runnable: str) -> str:
    note = " (inferred from the releases around it)" if cell.inferred else ""
    wheel = f"TensorFlow {release}{note}"
    if cell.verdict == "cannot":
        later = f"; it runs from TensorFlow {runnable} on" if runnable else ""
        return f"{wheel} has no code that this GPU accepts{later}"
    if cell.verdict == "native":
        return f"{wheel} has machine code for this GPU"
    part = {"sass": "its elementwise kernels", "jit": "all its kernels"}[cell.library]
    return f"{wheel} compiles {part} at first use{_library_caution(gpu, release)}"


def _library_caution(gpu: Gpu, release: str) -> str:
    """The wheel's kernels are not all: cuBLAS and cuDNN must know the card too."""
    cuda = _cuda_of(release)
    if not cuda or _key(cuda) >= _key(gpu.first_cuda):
        return ""
    if _libraries_too_old(gpu, release):
        return f", but its CUDA {cuda} libraries are older than the card: expect it to fail"
    return f"; it needs CUDA libraries of {gpu.first_cuda} or later beside it (built for {cuda})"


def _from_here_on(gpu: Gpu, cells: tuple[_Cell, ...], verdicts: set[Support]) -> str:
    """Return first measured release from which it and all later ones have one of the verdicts.

    Releases whose CUDA has an older major version than the card's first CUDA do not count: their
    cuBLAS and cuDNN were made before the card.
    """
    first = ""
    for cell in reversed(cells):
        if cell.verdict not in verdicts or _libraries_too_old(gpu, cell.release):
            break
        first = cell.release
    return first


def _libraries_too_old(gpu: Gpu, release: str) -> bool:
    """CuBLAS and cuDNN of an older CUDA major version were made before the card."""
    cuda = _cuda_of(release)
    return bool(cuda) and _key(cuda)[0] < _key(gpu.first_cuda)[0]


def _cuda_of(release: str) -> str:
    found = release_of(release)
    return found.cuda if found else ""


@functools.lru_cache(maxsize=1)
def _wheel_rows() -> tuple[Row, ...]:
    return read_table(DATA / "wheel_kernels.csv", _WHEEL_COLUMNS, key=("wheel",), ordered=False)


@functools.lru_cache(maxsize=1)
def _exceptions() -> dict[str, tuple[str, str]]:
    columns = ("gpu_slug", "verdict", "reason", "source")
    rows = read_table(DATA / "wheel_exceptions.csv", columns, key=("gpu_slug",))
    return {row.text("gpu_slug"): (row.text("reason"), row.text("source")) for row in rows}


def _cells(gpu: Gpu) -> tuple[_Cell, ...]:
    column = _CARD_COLUMNS.get(gpu.compute_capability)
    return tuple(_read_cell(row, column) for row in _wheel_rows()) if column else ()


def _read_cell(row: Row, column: str) -> _Cell:
    library, _, elementwise = row.text(column).partition("/")
    if {library, elementwise} - {"sass", "jit", "NO", "-"}:
        raise row.fault(f"{column} is '{row.text(column)}', not like sass/jit")
    hopper = column == "H100_9.0"
    driver = row.text(
        "driver_for_H100_linux" if hopper else "driver_needed_when_ptx_is_jitted_linux"
    )
    return _Cell(
        release=_minor(row.text("wheel").split("-")[1]),
        library=library,
        elementwise=elementwise,
        driver=_first_version(driver),
    )


def _cell(cells: tuple[_Cell, ...], release: str) -> _Cell | None:
    """Return the wheel of the release, or what both neighbours agree on; None where they do not."""
    wanted = _key(release)
    same = [one for one in cells if one.release == release]
    if same:
        return same[0]
    older = [one for one in cells if _key(one.release) < wanted]
    newer = [one for one in cells if _key(one.release) > wanted]
    if older and newer and older[-1].verdict == newer[0].verdict:
        low, high = older[-1], newer[0]
        return _Cell(
            release=release,
            library=high.library if high.library == low.library else "jit",
            elementwise=high.elementwise,
            driver=max(low.driver, high.driver, key=_key),
            inferred=True,
        )
    return None


def _driver(gpu: Gpu, cell: _Cell) -> str:
    """Return the wheel's floor (its CUDA, or its PTX where that is compiled) and the card's own."""
    needs = [one.linux for one in cuda_drivers() if one.cuda == gpu.first_cuda]
    if cell.verdict == "jit":
        needs.append(cell.driver)
    release = release_of(cell.release)
    if release:
        needs.append(release.min_driver_linux)
    return max((need for need in needs if need), key=_key, default="")


def _minor(version: str) -> str:
    numbers = version.split(".")
    return ".".join(numbers[:2])


def _first_version(text: str) -> str:
    match = _VERSION.search(text)
    return match[0] if match else ""


@functools.lru_cache(maxsize=512)
def _key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
