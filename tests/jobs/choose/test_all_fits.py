from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.gpus import parse_list
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.advise import Request, advise, check
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import keras
import numpy as np

x, y = np.zeros((6400, 8), "float32"), np.zeros((6400, 1), "float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
TWO_AND_ONE_UNKNOWN = f"""{HEAD}
model.fit(x, y, epochs=2000, batch_size=64)
wide = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4096), keras.layers.Dense(1)])
wide.compile("adam", "mse")
wide.fit(x, y, epochs=4000, batch_size=64)

def endless():
    while True:
        yield x[:64], y[:64]

model.fit(endless(), verbose=0)
"""


def request(script: Path, **changes: object) -> Request:
    base = Request(
        workload=parse_reference(str(script)),
        conditions=Conditions(gpus=parse_list("t4,l4"), counts=(1,)),
        route="quick",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def written(folder: Path, text: str) -> Path:
    script = folder / "train.py"
    script.write_text(text)
    return script


def test_hours_of_all_calls_are_added_and_the_start_of_the_machine_once(tmp_path: Path) -> None:
    script = written(tmp_path, TWO_AND_ONE_UNKNOWN)
    both = advise(request(script, all_fits=True))
    alone = [
        advise(request(script, workload=parse_reference(str(script), fit_number=number))).advice
        for number in (1, 2)
    ]
    for one in both.advice.ranking:
        parts = [next(o for o in each.ranking if o.slug == one.slug) for each in alone]
        starts = [part.part_h("start") for part in parts]
        start_h = starts[0].best if starts[0] else 0.0
        assert one.hours.best == pytest.approx(sum(p.hours.best for p in parts) - start_h)
        assert one.hours.high == pytest.approx(sum(p.hours.high for p in parts) - start_h)
        assert one.energy_kwh.best == pytest.approx(sum(p.energy_kwh.best for p in parts))
        assert one.steps == 2000 * 100 + 4000 * 100
        assert one.cost_usd
        assert one.usd_per_epoch
        assert one.usd_per_epoch.best == pytest.approx(one.cost_usd.best / 6000)
    advice = both.advice
    assert advice.run.fits == 2
    assert advice.headline.endswith("for all 2 calls of fit.")
    assert advice.notes[0].startswith("Calls 1 and 2 of fit are added up: ")
    assert advice.notes[1].startswith("Call 3 of fit is not in hours and cost: ")
    assert both.trace.workload.fit_number == 2  # the longer one, of whose step the answer tells
    assert not any("calls fit in" in one for one in both.trace.warnings)


def test_a_page_takes_a_row_apart_by_the_call_that_made_it(tmp_path: Path) -> None:
    """The longest call is the main one; the other is what the card does not hold."""
    script = written(
        tmp_path,
        f"""{HEAD}
model.fit(x, y, epochs=4000000, batch_size=64)
wide = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16384), keras.layers.Dense(16384),
                         keras.layers.Dense(1)])
wide.compile("adam", "mse")
wide.fit(x, y, epochs=1, batch_size=64)
""",
    )
    cards = Conditions(gpus=parse_list("gtx-1650"))
    told, whole = (
        advise(request(script, all_fits=True, conditions=cards, details=one)).advice
        for one in (False, True)
    )
    facts = [
        [
            (
                one.slug,
                one.verdict,
                one.estimate.fits,
                one.estimate.device_memory_bytes,
                one.estimate.step_s,
            )
            for one in advice.ranking
        ]
        for advice in (told, whole)
    ]
    assert facts[0] == facts[1]
    assert "does not fit" in {one.verdict for one in whole.ranking}


def test_a_script_with_one_call_is_answered_as_without(tmp_path: Path) -> None:
    script = written(tmp_path, f"{HEAD}model.fit(x, y, epochs=30, batch_size=64)\n")
    added, plain = (advise(request(script, all_fits=all_)).advice for all_ in (True, False))
    assert added.ranking == plain.ranking
    assert added.run == plain.run
    assert added.notes[0].startswith("Call 1 of fit is added up: ")


def test_a_call_that_cannot_be_reached_ends_the_sum_and_says_why(tmp_path: Path) -> None:
    fails = (
        f"{HEAD}model.fit(x, y, epochs=30, batch_size=64)\nopen('missing.txt')\nmodel.fit(x, y)\n"
    )
    advice = advise(request(written(tmp_path, fails), all_fits=True)).advice
    assert advice.run.fits == 1
    assert advice.notes[1].startswith("Calls of fit from the 2nd on, if there are any, are not in:")
    assert "missing.txt" in advice.notes[1]


def test_a_script_of_unknown_length_alone_has_no_sum(tmp_path: Path) -> None:
    text = f"{HEAD}\ndef endless():\n    while True:\n        yield x[:64], y[:64]\n\n"
    script = written(tmp_path, f"{text}model.fit(endless())\n")
    with pytest.raises(UsageError, match="the length of no call of fit in"):
        advise(request(script, all_fits=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 3}, "contradicts --steps, --epochs and --samples"),
        ({"steps": 3}, "contradicts --steps, --epochs and --samples"),
        ({"route": "exact"}, "contradicts --route exact"),
        ({"workload": parse_reference("keras:ResNet50")}, "is of a script"),
    ],
)
def test_what_is_of_one_call_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    script = written(tmp_path, HEAD)
    with pytest.raises(UsageError, match=message):
        check(request(script, all_fits=True, **changes))


def test_a_named_call_is_refused(tmp_path: Path) -> None:
    script = written(tmp_path, HEAD)
    named = parse_reference(str(script), fit_number=2)
    with pytest.raises(UsageError, match="contradicts --fit"):
        check(request(script, all_fits=True, workload=named))
