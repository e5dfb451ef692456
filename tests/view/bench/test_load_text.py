from __future__ import annotations

from dataclasses import replace

from tests.loads import result, search, stage, stretch

from tfdyno.view.bench.load_text import load_text
from tfdyno.words.bench.load import main_stage


def test_the_answer_is_the_stretch_at_the_knee() -> None:
    found = search()
    assert main_stage(found).run.plan.rate_per_s == 200.0
    text = load_text(found)
    assert text.startswith("cnn at http://127.0.0.1:8501/v1/models/cnn takes 200 requests/s with")
    marks = [line[0] for line in text.split("\n") if "requests/s  " in line]
    assert marks == [" ", "x", "*"]


def test_an_answer_without_a_good_request_is_told() -> None:
    run = stretch([0.01] * 4, codes=(429,) * 4)
    assert "nothing was measured" in load_text(result(stage(run), allows_refusals=True))


def test_lines_fit_the_screen_and_the_histogram_is_drawn() -> None:
    text = load_text(search(), width=80, written=("load.json",))
    assert max(map(len, text.split("\n"))) <= 80
    assert "  4  ██" in text
    assert text.endswith("Wrote load.json.")
    assert "$" in text


def test_a_long_wait_is_no_power_of_ten() -> None:
    text = load_text(result(stage(stretch([15.22] * 40))))
    assert "worst 15,220 ms" in text


def test_of_two_stretches_at_the_knee_the_longer_one_is_marked() -> None:
    found = search()
    last = found.stages[-1]
    plan = replace(last.run.plan, decides=True)
    longer = replace(last, run=replace(last.run, plan=plan))
    text = load_text(replace(found, stages=(*found.stages, longer)))
    rows = [line[:26].rstrip() for line in text.split("\n") if "200 requests/s  " in line
            or "longer" in line]  # fmt: skip
    assert rows == ["  200 requests/s", "* 200 requests/s, longer"]
