"""model/trial_judge: why a trial is not run, each reason by hand."""

from __future__ import annotations

import math
from typing import Any, Literal

from tfdyno.core.interval import Interval
from tfdyno.core.recipe import Recipe
from tfdyno.core.tuning import Trial, TrialEstimate
from tfdyno.model import trial_judge as judge

MadeBy = Literal["estimate", "law", "trials"]
GIB = float(1 << 30)


def trial(number: int = 9, **fields: Any) -> Trial:
    given: dict[str, Any] = {"recipe": Recipe(batch_size=number), "batch_size": number, **fields}
    return Trial(number=number, **given)


def measured(number: int, rate: float, **fields: Any) -> Trial:
    rates = (rate * math.exp(-0.01), rate, rate * math.exp(0.01))
    return trial(number, status="measured", ran=True, rates_per_s=rates, samples_per_s=rate,
                 **fields)  # fmt: skip


def expected(low: float, best: float, high: float, made_by: MadeBy = "law") -> TrialEstimate:
    return TrialEstimate(made_by=made_by, samples_per_s=Interval(low=low, best=best, high=high))


def held(low: float, best: float, made_by: MadeBy = "law") -> TrialEstimate:
    memory = Interval(low=low * GIB, best=best * GIB, high=best * GIB * 2)
    return TrialEstimate(made_by=made_by, memory_bytes=memory, limit_bytes=8 * GIB)


def test_the_best_is_the_fastest_that_ran_to_its_end() -> None:
    early = trial(3, status="pruned", ran=True, samples_per_s=900.0)
    trials = [measured(1, 100.0), measured(2, 200.0), early, measured(4, 200.0)]
    best = judge.best_of(trials)
    assert best
    assert best.number == 2
    assert judge.best_of([early]) is None


def test_the_recipe_of_an_earlier_trial_is_the_same() -> None:
    known = [measured(1, 100.0, recipe=Recipe(batch_size=32))]
    found = judge.as_before(trial(recipe=Recipe(batch_size=32)), known)
    assert found
    assert (found.status, found.same_as) == ("same", 1)
    assert judge.as_before(trial(recipe=Recipe(batch_size=64)), known) is None


def test_what_ran_out_of_memory_does_so_with_a_larger_batch_and_the_same_settings() -> None:
    oom = trial(1, status="not_fit", ran=True, batch_size=128)
    assert "A batch of 128 ran out of memory" in judge.certain(
        trial(batch_size=256), [oom], ["a"], "a"
    )
    assert judge.certain(trial(batch_size=64), [oom], ["a"], "a") == ""
    assert judge.certain(trial(batch_size=256), [oom], ["a"], "b") == ""
    foretold = trial(1, status="not_fit", ran=False, batch_size=128)
    assert judge.certain(trial(batch_size=256), [foretold], ["a"], "a") == ""


def test_a_setting_that_alone_made_a_trial_fail_is_refused() -> None:
    worked = measured(1, 100.0, changes={"execution": "xla"})
    failed = trial(2, status="failed", ran=True,
                   changes={"execution": "xla", "input.cache": "true"})  # fmt: skip
    said = judge.refused(trial(changes={"input.cache": "true"}), [worked, failed])
    assert said == "input.cache=true made trial 2 fail."
    assert judge.refused(trial(changes={"input.cache": "true"}), [failed]) == ""  # or xla did
    assert judge.refused(trial(changes={"execution": "xla"}), [worked, failed]) == ""


def test_it_does_not_fit_where_the_low_end_is_over_the_limit() -> None:
    assert "9 GiB of memory at least, and there is 8 GiB" in judge.unfit(held(9.0, 10.0))
    assert judge.unfit(held(7.9, 10.0)) == ""
    assert judge.unfit(None) == ""


def test_the_low_end_of_an_estimate_is_widened_before_it_decides() -> None:
    # 10 * (8.2 / 10) ** 1.4142 = 7.55 GiB, below the 8 there are; 9.5 gives 9.30
    assert judge.unfit(held(8.2, 10.0, made_by="estimate")) == ""
    assert "9.30 GiB" in judge.unfit(held(9.5, 10.0, made_by="estimate"))


def test_it_is_hopeless_where_its_optimistic_end_is_below_the_best_at_its_worst() -> None:
    known = [measured(1, 100.0), measured(2, 90.0)]
    # spread 1 % over 4 degrees: t at 99.5 % is 4.604, / sqrt 3: the best has 97.4 at least
    assert "97.4 at least" in judge.hopeless(expected(80.0, 90.0, 97.0), known)
    assert judge.hopeless(expected(80.0, 90.0, 98.0), known) == ""
    assert judge.hopeless(expected(1.0, 2.0, 3.0), []) == ""
    assert judge.hopeless(None, known) == ""


def test_an_estimate_is_hopeless_only_with_the_error_that_estimates_have() -> None:
    known = [measured(1, 100.0), measured(2, 90.0)]
    # 50 * (80 / 50) ** 1.4142 = 97.2 is below 97.4; of 81 it is 98.9
    assert judge.hopeless(expected(30.0, 50.0, 80.0, "estimate"), known)
    assert judge.hopeless(expected(30.0, 50.0, 81.0, "estimate"), known) == ""


def test_estimates_that_were_low_before_make_nothing_hopeless() -> None:
    low = [measured(n, 100.0 + n, estimate=expected(40.0, 50.0, 60.0, "estimate"))
           for n in range(1, 6)]  # fmt: skip
    assert judge.hopeless(expected(45.0, 50.0, 55.0, "estimate"), low) == ""
    assert judge.hopeless(expected(45.0, 50.0, 55.0, "estimate"), low[:2])
