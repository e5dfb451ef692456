"""Bad input ends in one sentence on stderr and exit code 2 or 3; nothing is half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.offers import SHIPPED
from tfdyno.cli.main import main
from tfdyno.jobs.choose import trace as tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.jobs.choose.trace import Traced

MODEL = f"{Path(__file__).parent.parent / 'data' / 'models' / 'small.py'}:convnet"
RESNET = "keras:ResNet50"
FILES = {
    "nofit.py": "print('hello')\n",
    "nofile.py": "open('data.csv')\n",
    "nomodule.py": "import kerass\n",
    "syntax.py": "def f(:\n",
    "empty.keras": "",
    "notes.txt": "hi\n",
    "model.py": (
        "import os, signal\n"
        "def build(): return None\n"
        "def wrong(): raise ValueError('first\\nsecond')\n"
        "def crash(): os.abort()\n"
        "def killed(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def leave(): raise SystemExit(3)\n"
        "def ends(): os._exit(0)\n"
    ),
    "does_not_build.py": (
        "import keras\n"
        "def build():\n"
        "    return keras.Sequential([keras.Input((8,)), keras.layers.Reshape((3, 3))])\n"
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ordinary folder of a user, which is also the working directory."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """What the command said on stderr; checks that it is one sentence, and the exit code."""
    found = main(words)
    out, err = capsys.readouterr()
    assert (found, out) == (code, ""), err
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "defect in tfdyno" not in err
    return err


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("missing.py", "there is no file missing.py"),
        ("mode.py:build", "there is no file mode.py; did you mean model.py"),
        ("notes.txt", "'notes.txt' names no workload; give script.py"),
        ("", "'' names no workload"),
        (".", "'.' names no workload"),
        ("keras:", "'keras:' names no workload"),
        ("empty.keras", "is not a Keras 3 model file"),
        ("nofit.py", "it ended without calling fit; name the function that builds the model"),
        ("nofile.py", "nofile.py needs the file 'data.csv'"),
        ("nomodule.py", "the package kerass is not installed"),
        ("syntax.py", "syntax.py is not valid Python: syntax.py, line 1"),
        ("no_such_package.part:build", "the package no_such_package is not installed"),
        ("keras:ResNet51", "did you mean keras:ResNet50"),
        ("model.py:biuld", "model.py has no function 'biuld'; did you mean build"),
        ("model.py:build", "does not return a Keras model: it returns a NoneType"),
        ("model.py:leave", "it ended with exit code 3"),
    ],
)
def test_a_workload_that_is_none_is_wrong_use(
    reference: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    assert sentence in said(capsys, 2, "estimate", reference, "--gpu", "t4", "--quiet")
    assert sorted(p for p in folder.iterdir() if p.name != "__pycache__") == before


@pytest.mark.tf
@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("model.py:wrong", "model.py, line 3: ValueError: first; see whether it trains"),
        ("does_not_build.py:build", "The total size of the tensor must be unchanged"),
    ],
)
def test_a_model_that_fails_names_its_line(
    reference: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    assert sentence in said(capsys, 2, "estimate", reference, "--gpu", "t4", "--quiet")


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("model.py:crash", "the process crashed (SIGABRT)"),
        ("model.py:killed", "it was killed by SIGKILL"),
        ("model.py:ends", "the process ended with exit code 0 and without a result"),
    ],
)
def test_a_child_that_dies_is_a_failure_of_the_tool(
    reference: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    assert sentence in said(capsys, 3, "estimate", reference, "--gpu", "t4", "--quiet")


def test_a_script_that_hangs_is_stopped(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "hangs.py").write_text("import time\ntime.sleep(100)\n")
    monkeypatch.setattr(tracing, "trace", _with_limit(tracing.trace, 4.0))
    monkeypatch.setattr("tfdyno.jobs.choose.predict.trace", tracing.trace)
    error = said(capsys, 3, "estimate", "hangs.py", "--gpu", "t4", "--quiet")
    assert "tracing hangs.py was stopped: no result within 4 s" in error


def _with_limit(function: Callable[..., Traced], timeout_s: float) -> Callable[..., Traced]:
    return lambda *args, **options: function(*args, **{**options, "timeout_s": timeout_s})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--gpu", "rtx-4091"), "there is no GPU 'rtx-4091' in the catalogue; did you mean"),
        (("--gpu", ""), "no GPU was named"),
        (("--gpu", "t4:1g.5gb"), "Tesla T4 cannot be partitioned"),
        (("--gpu", "a100-sxm4-80gb:9g.1gb"), "has no MIG slice '9g.1gb'; it has 1g.10gb"),
        (("--gpu", "t4", "--batch-size", "nan"), "batch size nan is not possible"),
        (("--gpu", "t4", "--batch-size", "-inf"), "batch size -inf is not possible"),
        (("--gpu", "t4", "--batch-size", "1e400"), "batch size 1e400 is not possible"),
        (("--gpu", "t4", "--batch-size", "0"), "batch size 0 is not possible"),
        (("--gpu", "t4", "--batch-size", "-1"), "batch size -1 is not possible"),
        (("--gpu", "t4", "--batch-size", "1000000000"), "the largest that is estimated is"),
        (("--gpu", "t4", "--batch-size", "x"), "batch size 'x' is not a number"),
        (("--gpu", "t4", "--global-batch", "0"), "global batch 0 is not possible"),
        (("--gpu", "t4", "--replicas", "0"), "replicas 0 is not possible"),
        (("--gpu", "t4", "--precision", "int8"), "'int8' is not one of"),
        (
            ("--gpu", "t4", "--mode", "trian"),
            "'trian' is not one of train, infer; did you mean train",
        ),
        (("--gpu", "t4", "--execution", "xlaa"), "'xlaa' is not one of"),
        (("--gpu", "t4", "--route", "slow"), "'slow' is not one of"),
        (("--gpu", "t4", "--replicas", "2", "--link", "nvlink9"), "there is no link 'nvlink9'"),
        (("--gpu", "t4", "--python", "/no/python"), "--python /no/python cannot be run"),
        (("--gpu", "t4", "--input-shape", "a,b"), "input size 'a' is not a number"),
        (("--gpu", "t4", "--jsn"), "no such option"),
        (("--gpu", "-t4"), "there is no GPU '-t4'"),
        (("--gpu", "grün"), "there is no GPU 'grün' in the catalogue; 'tfdyno gpus' lists all"),
        (("--gpu", "t4", "--link", ""), "--link is empty"),
        (
            ("--gpu", "t4", "--replicas", "2", "--link", "nvlink4-nvswitch-h800"),
            "nvlink4-nvswitch-h800 does not join these cards: Tesla T4 has no NVLink",
        ),
    ],
)
def test_a_wrong_setting_of_estimate_is_wrong_use(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = said(capsys, 2, "estimate", MODEL, "--route", "quick", "--quiet", *words)
    assert sentence.lower() in error.lower()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--samples", "nan"), "samples nan is not possible"),
        (("--epochs", "0"), "epochs 0 is not possible"),
        (("--deadline-h", "inf"), "deadline inf is not possible"),
        (("--budget-usd", "0"), "budget 0 is not possible"),
        (("--provider", "amazon"), "there is no offer of provider 'amazon'; choose from aws"),
        (("--owned", "rtx-30900"), "did you mean rtx-3090"),
        (("--scenario", "home"), "'home' is not one of"),
        (("--html", "no-folder/report.html"), "there is no folder no-folder"),
        (("--html", ""), "--html is empty; name a file"),
        (("--html", "-"), "--html does not write to standard output"),
        (("--provider", ""), "--provider is empty"),
        (("--epochs", "1e308"), "epochs 1e308 is not possible; give at most 1,000,000,000,000"),
        (("--epochs", "1e9", "--samples", "1e9"), "epochs x samples"),
        (("--steps", "1e18"), "give at most 10,000,000,000"),
        (("--global-batch", "100", "--count", "8"), "100 cannot be shared by 8 replicas"),
        (("--count", "3", "--gpu", "t4"), "leave out --gpu, --provider, --count"),
    ],
)
def test_a_wrong_setting_of_advise_is_wrong_use(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = said(capsys, 2, "advise", MODEL, "--route", "quick", "--quiet", *words)
    assert sentence in error


def offer_rows() -> list[str]:
    return [line for line in SHIPPED.read_text().splitlines() if not line.startswith("#")][:2]


BROKEN_ROWS = (
    ("{header}\na,b\n", "line 2: it has 2 cells, the header has"),
    ("{header}\n{nan}\n", "line 2: ram_gb is nan"),
)
BROKEN_FILES = (
    ("foo,bar\n", "line 1: the column provider is missing"),
    ("", "line 1: the column provider is missing"),
    ("\udc91\udcff", "line 1: it is not readable as CSV"),
)
ADVISE = ("advise", MODEL, "--route", "quick", "--quiet", "--html", "report.html")


@pytest.mark.parametrize(
    ("words", "content", "sentence"),
    [
        *((ADVISE, *broken) for broken in BROKEN_ROWS + BROKEN_FILES),
        *((("data", "refresh"), *broken) for broken in BROKEN_FILES),  # rows are quarantined
    ],
)
def test_a_corrupt_file_of_prices_names_its_line_and_spares_the_report(
    words: tuple[str, ...],
    content: str,
    sentence: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_prices(folder, content)
    (folder / "report.html").write_text("the old report")
    error = said(capsys, 2, *words, "--offers", "prices.csv")
    assert "prices.csv" in error
    assert sentence in error
    assert (folder / "report.html").read_text() == "the old report"


@pytest.mark.parametrize(("content", "sentence"), BROKEN_ROWS)
def test_refresh_puts_a_corrupt_row_aside_and_says_why(
    content: str,
    sentence: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(folder / "own"))
    (folder / "own").mkdir()
    write_prices(folder, content)
    assert main(["data", "refresh", "--offers", "prices.csv", "--yes"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1 quarantined" in out
    assert sentence in out


def write_prices(folder: Path, content: str) -> None:
    """A price list: the shipped header, and the first row with a broken number."""
    header, row = offer_rows()
    nan = ",".join("nan" if i == header.split(",").index("ram_gb") else cell
                   for i, cell in enumerate(row.split(",")))  # fmt: skip
    text = content.format(header=header, nan=nan)
    (folder / "prices.csv").write_bytes(text.encode(errors="surrogateescape"))


SAVE_LAMBDA = """
import keras
model = keras.Sequential([keras.Input((8,)), keras.layers.Lambda(lambda x: x * 2)])
model.save("lambda.keras")
"""


def test_a_saved_lambda_is_refused_and_the_option_that_allows_it_exists(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", SAVE_LAMBDA], cwd=folder, env=environment, check=True)
    words = ("estimate", "lambda.keras", "--gpu", "t4", "--quiet", "--mode", "infer")
    error = said(capsys, 2, *words)
    assert "lambda.keras holds a lambda: loading it runs code from the file" in error
    option = next(word for word in error.split() if word.startswith("--"))
    assert main([*words, option]) == 0


@pytest.mark.filterwarnings("always:a damaged cache entry")
def test_a_damaged_cache_entry_is_told_in_one_sentence_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_CACHE", str(tmp_path))
    words = ("estimate", MODEL, "--gpu", "t4", "--quiet", "--route", "quick", "--batch-size", "8")
    assert main(words) == 0
    first = capsys.readouterr().out
    for entry in (tmp_path / "trace").glob("*/trace.json"):
        entry.write_text("{")
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert out == first
    assert err.startswith("tfdyno: a damaged cache entry was dropped: ")
    assert err.count("\n") == 1


def test_a_cache_that_cannot_be_written_is_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TFDYNO_CACHE", str(tmp_path / "file"))
    error = said(capsys, 2, "estimate", MODEL, "--gpu", "t4", "--quiet")
    assert "name a folder that you may write to in TFDYNO_CACHE" in error
