"""``tfdyno advise --scenario serve`` as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.choose.serving_size import Autoscaling

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"
SERVE = ("--scenario", "serve", "--requests-per-day", "20000000", "--p99-ms", "50")
FEW = ("--gpu", "t4,l4")


def tfdyno(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", "advise", *words],
        capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_json_has_the_keys_of_advise_and_those_of_a_service(tmp_path: Path) -> None:
    page, output = tmp_path / "size.html", tmp_path / "size.json"
    done = tfdyno(MODEL, *SERVE, *FEW, "--json", "--html", str(page), "--output", str(output))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer["picks"]) == {"cheapest", "fastest", "balanced"}
    first = answer["ranking"][0]
    documented = {"gpu", "count", "offer", "hours", "cost_usd", "reason"}
    assert documented | {"usd_per_million", "p50_s", "p99_s", "max_batch_size", "max_delay_s",
                         "utilisation_ratio", "at_mean", "at_peak"} <= set(first)  # fmt: skip
    # a month of requests at this price is what the month costs
    requests = 20_000_000 * 730 / 24
    assert first["usd_per_million"] * requests / 1e6 == pytest.approx(first["cost_usd"])
    assert first["at_peak"]["p99_s"] <= first["at_peak"]["p99_high_s"] <= 0.050
    assert first["at_mean"]["p99_s"] <= first["at_peak"]["p99_s"]
    front = [(row["cost_usd"], row["p99_s"]) for row in answer["pareto"]]
    assert front == sorted(front)
    costs = [row["cost_usd"] for row in answer["ranking"] if row["verdict"] == "feasible"]
    assert costs == sorted(costs)
    # the file is the same answer, and an autoscaler's part of it is a noun
    written = json.loads(output.read_text())
    assert written == answer
    scale = from_builtins(written["autoscaling"], Autoscaling)
    assert 1 <= scale.min_replicas <= scale.max_replicas
    text = page.read_text()
    assert text.rstrip().endswith("</html>")
    assert not re.search(r'(?:src|href)="https?:', text)


def test_text_begins_with_the_answer_and_fits_80_columns() -> None:
    done = tfdyno(MODEL, *SERVE, *FEW)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Rent ")
    assert any(line.startswith("Autoscaling: ") for line in lines)
    assert max(map(len, lines)) <= 80


def test_what_no_card_keeps_is_said_with_what_it_takes() -> None:
    done = tfdyno(MODEL, *SERVE[:-1], "1", *FEW)
    assert done.returncode == 0
    assert done.stdout.startswith("No machine here keeps 1 ms: on ")
    assert "a batch of one request takes up to" in " ".join(done.stdout.split())


def test_a_machine_that_was_timed_takes_part_at_its_price(tmp_path: Path) -> None:
    timed = tmp_path / "cpu.json"
    timed.write_text('{"name": "our CPU", "latency_s_by_batch": {"1": 0.005, "32": 0.03}}')
    done = tfdyno(MODEL, *SERVE, "--gpu", "t4", "--measured", str(timed), "--usd-per-h", "0.001",
                  "--json")  # fmt: skip
    answer = json.loads(done.stdout)
    best = answer["picks"]["cheapest"]
    assert best["gpu"] == "our CPU"
    assert best["cost_usd"] == pytest.approx(0.001 * 730 * best["machines"])


def test_a_spare_machine_is_paid_and_answers_too() -> None:
    plain, spare = (
        json.loads(tfdyno(MODEL, *SERVE, "--gpu", "t4", *more, "--json").stdout)["ranking"][0]
        for more in ((), ("--spare", "1"))
    )
    assert spare["machines"] >= plain["machines"] + 1 or spare["offer"] != plain["offer"]
    assert spare["cost_usd"] > plain["cost_usd"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--p99-ms", "0"), "p99 0 is not possible"),
        (("--p99-ms", "-3"), "p99 -3 is not possible"),
        (("--p99-ms", "nan"), "p99 nan is not possible"),
        (("--requests-per-day", "0"), "requests per day 0 is not possible"),
        (("--requests-per-day", "1e13"), "1e+13 requests per day are not possible"),
        (("--epochs", "3"), "--epochs contradicts --requests-per-day"),
        (("--steps", "3"), "--steps contradicts --requests-per-day"),
        (("--deadline-h", "3"), "--deadline-h contradicts --requests-per-day"),
        (("--batch-size", "8"), "--batch-size contradicts --requests-per-day"),
        (("--spot",), "--spot contradicts --scenario serve"),
        (("--peak-factor", "0.5"), "a peak factor of 0.5 is not possible"),
        (("--rows-per-request", "1000"), "1,000 rows in a request are not weighed"),
        (("--usd-per-h", "1"), "--usd-per-h needs --measured"),
        (("--measured", "none.json"), "none.json cannot be read"),
        (("--scenario", "research"), "--requests-per-day is for a service"),
        (("--route", "exact"), "--route exact compiles for XLA"),
    ],
)
def test_what_has_no_answer_is_refused_in_one_sentence(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    done = tfdyno(MODEL, *SERVE, *FEW, *words, "--html", "page.html", cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("one", ["--requests-per-day", "--p99-ms"])
def test_one_without_the_other_says_what_lacks(one: str) -> None:
    done = tfdyno(MODEL, "--scenario", "serve", one, "5")
    assert done.returncode == 2
    assert f"{one} needs --" in done.stderr
