"""What every test shares: one cache of traces and programs, and no GPU that is not asked for."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.rewording import reword
from tests.touched import changed, chosen, code_texts, distances, long_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "mark.tf"
NVIDIA = Path(__file__).parent / "data" / "nvidia"
# The machine may be loaded: a slow example is no failure. No database: nothing is left behind.
settings.register_profile(
    "tfdyno",
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tfdyno")
# A shell that starts the tests in the background has Ctrl-C ignored, nohup the end of a terminal,
# and children inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give all tests, and the children they start, one cache that is not the user's."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # the workers' common parent
    with pytest.MonkeyPatch.context() as patch:
        shared = os.environ.get("TFDYNO_TEST_CACHE")  # of the stages of scripts/test
        patch.setenv("TFDYNO_CACHE", shared or str(base / "tfdyno-cache"))
        patch.delenv("VIRTUAL_ENV", raising=False)  # of whoever starts them: not that of the code
        patch.setenv("TFDYNO_LANG", "en")  # whatever the locale of who tests
        patch.setenv("XDG_DATA_HOME", str(base / "data"))  # own prices, results, recalibration
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Give a way to run all long tests."""
    parser.addoption("--all", action="store_true", help="all long tests, touched or not")
    parser.addoption("--measure", type=Path, help="file that gets the seconds of each test")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Write what a sentence says now into the failing assert, where that is asked for."""
    if os.environ.get("GOLDEN") == "write" and op == "==":
        reword(left, right)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which of the long tests run."""
    if _takes_all(config):
        return "long tests: all"
    count = len(changed())
    return f"long tests: those next to the {count} files that changed; --all takes all"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without TensorFlow unread where only tests with it are asked for."""
    if not config.option.markexpr.startswith("tf") or collection_path.suffix != ".py":
        return None
    return True if MARK not in collection_path.read_text() else None


class _Measure:
    """Adds the seconds of each test to a file as it ends; of those that a plain run may take."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole_s: dict[str, float] = defaultdict(float)
        self._shared_s: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        self._whole_s[name] += report.duration
        if report.when == "setup" or "tf" in report.keywords:
            self._shared_s[name] += report.duration
        if report.when == "teardown" and "slow" not in report.keywords:
            seconds = (f"{of.pop(name):.2f}" for of in (self._whole_s, self._shared_s))
            with self._path.open("a", newline="") as file:
                csv.writer(file).writerow((name, *seconds))


def pytest_configure(config: pytest.Config) -> None:
    """Measure where it is asked for, in the process that hears of all tests."""
    path = config.getoption("--measure")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(_Measure(path))


@pytest.hookimpl(trylast=True)  # what -m leaves out is out already
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests to other runs, and skip those that need a GPU where there is none."""
    if not _takes_all(config):
        near = distances(code_texts(), changed())
        found = chosen([item.nodeid for item in items], long_tests(), near)
        config.hook.pytest_deselected(items=[one for one in items if one.nodeid in found.left])
        items[:] = [one for one in items if one.nodeid not in found.left]
    if shutil.which("nvidia-smi"):
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU: nvidia-smi is not installed"))


def _takes_all(config: pytest.Config) -> bool:
    """Whether all long tests are asked for: by the option, or as all that are asked for by name."""
    return config.getoption("--all") or not {*config.args} <= {str(config.rootpath), "tests"}


@pytest.fixture(scope="session")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libraries that answer as NVIDIA's do, made by the C compiler."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("nvidia")
    for source, name, *options in (
        ("nvml.c", "libnvidia-ml.so.1"),
        ("cuda.c", "libcuda.so.550.54.14"),
        ("cudnn.c", "libcudnn.so.9"),
        ("cudnn.c", "libcublas.so.12", "-DDIES"),
    ):
        command = [compiler, "-shared", "-fPIC", *options, "-o", str(folder / name)]
        subprocess.run([*command, str(NVIDIA / source)], check=True)
    (folder / "libcuda.so.1").symlink_to("libcuda.so.550.54.14")
    return folder
