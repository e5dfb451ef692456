"""model/trial_judge: why a trial is not run, each reason by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from tfdyno.core.base.interval import Interval
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.core.train.tuning import Trial, TrialEstimate
from tfdyno.model.measure import trial_judge as judge

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


def at(estimate: TrialEstimate | None) -> Trial:
    return trial(estimate=estimate)


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
    assert "A batch of 128 ran out of memory" in judge.certain(trial(batch_size=256), [oom])
    assert judge.certain(trial(batch_size=64), [oom]) == ""
    graph = trial(batch_size=256, recipe=Recipe(execution="graph"))
    assert judge.certain(graph, [oom]) == ""
    foretold = trial(1, status="not_fit", ran=False, batch_size=128)
    assert judge.certain(trial(batch_size=256), [foretold]) == ""


def test_a_setting_that_alone_made_a_trial_fail_is_refused() -> None:
    worked = measured(1, 100.0, changes={"execution": "xla"})
    failed = trial(2, status="failed", ran=True, is_refused=True,
                   changes={"execution": "xla", "input.cache": "true"})  # fmt: skip
    said = judge.refused(trial(changes={"input.cache": "true"}), [worked, failed])
    assert said == "input.cache=true made trial 2 fail."
    assert judge.refused(trial(changes={"input.cache": "true"}), [failed]) == ""  # or xla did
    assert judge.refused(trial(changes={"execution": "xla"}), [worked, failed]) == ""


def test_what_crashed_says_nothing_of_its_settings() -> None:
    worked = measured(1, 100.0, changes={})
    crashed = trial(2, status="failed", ran=True, changes={"input.cache": "true"})
    assert judge.refused(trial(changes={"input.cache": "true"}), [worked, crashed]) == ""


def test_it_does_not_fit_where_the_low_end_is_over_the_limit() -> None:
    assert judge.unfit(trial(estimate=held(9.0, 10.0))) == (
        "The line through other trials says 9 GiB of memory at least, and there is 8 GiB (99%)."
    )
    assert judge.unfit(trial(estimate=held(7.9, 10.0))) == ""
    assert judge.unfit(trial()) == ""


def test_the_low_end_of_an_estimate_is_widened_before_it_decides() -> None:
    # 10 * (8.2 / 10) ** 1.4142 = 7.55 GiB, below the 8 there are; 9.5 gives 9.30
    assert judge.unfit(trial(estimate=held(8.2, 10.0, made_by="estimate"))) == ""
    said = judge.unfit(trial(estimate=held(9.5, 10.0, made_by="estimate")))
    assert said == "The estimate says 9.30 GiB of memory at least, and there is 8 GiB."


def test_what_a_trial_took_disproves_an_estimate_of_more() -> None:
    def at(batch: int, best: float, **fields: Any) -> Trial:
        return trial(batch, recipe=Recipe(batch_size=batch),
                     estimate=held(best, best, made_by="estimate"), **fields)  # fmt: skip

    ran = at(64, 9.3, status="measured", ran=True, peak_memory_bytes=int(6 * GIB))
    assert judge.unfit(at(64, 9.3)) != ""
    assert judge.unfit(at(64, 9.3), [ran]) == ""
    assert judge.unfit(at(32, 9.0), [ran]) == ""
    # 12.3 GiB * 6 / 9.3 = 7.94 GiB fit, 12.6 give 8.13
    assert judge.unfit(at(80, 12.3), [ran]) == ""
    assert "8.13 GiB" in judge.unfit(at(80, 12.6), [ran])
    wide = replace(at(64, 9.3), recipe=Recipe(batch_size=64, precision="float32"))
    assert judge.unfit(wide, [ran]) != ""


def test_it_is_hopeless_where_its_optimistic_end_is_below_the_best_at_its_worst() -> None:
    known = [measured(1, 100.0), measured(2, 90.0)]
    # spread 1 % over 4 degrees: t at 99.5 % is 4.604, / sqrt 3: the best has 97.4 at least, and
    # 84.7 where nothing tells how the machine moved; 95.5 where it moved by nothing
    assert "84.7 at least" in judge.hopeless(at(expected(80.0, 82.0, 84.0)), known)
    assert judge.hopeless(at(expected(80.0, 90.0, 85.0 + 6)), known) == ""
    timed = [replace(one, beside_s=(1.0,) * 3) for one in known]
    assert "95.5 at least" in judge.hopeless(at(expected(80.0, 90.0, 95.0)), timed)
    moved = [timed[0], replace(timed[1], beside_s=(1.1,) * 3)]
    assert judge.hopeless(at(expected(80.0, 90.0, 95.0)), moved) == ""
    assert judge.hopeless(at(expected(1.0, 2.0, 3.0)), []) == ""
    assert judge.hopeless(at(None), known) == ""


def test_an_estimate_is_hopeless_only_with_the_error_that_estimates_have() -> None:
    known = [measured(1, 100.0), measured(2, 90.0)]
    # 50 * (80 / 50) ** 1.4142 = 97.2 is below 97.4; of 81 it is 98.9
    assert judge.hopeless(at(expected(30.0, 50.0, 80.0, "estimate")), known)
    assert judge.hopeless(at(expected(30.0, 50.0, 81.0, "estimate")), known) == ""


def test_estimates_that_were_low_before_make_nothing_hopeless() -> None:
    low = [measured(n, 100.0 + n, estimate=expected(40.0, 50.0, 60.0, "estimate"))
           for n in range(1, 6)]  # fmt: skip
    assert judge.hopeless(at(expected(45.0, 50.0, 55.0, "estimate")), low) == ""
    assert judge.hopeless(at(expected(45.0, 50.0, 55.0, "estimate")), low[:2])


def test_estimates_that_were_high_for_other_settings_make_nothing_hopeless() -> None:
    """Bound by its input, every trial is half as fast as estimated; with a cache it is not."""
    bound = [measured(n, 100.0, estimate=expected(150.0, 200.0, 250.0, "estimate"))
             for n in range(1, 7)]  # fmt: skip
    of_cached = expected(150.0, 200.0, 250.0, "estimate")
    cached = replace(at(of_cached), recipe=Recipe(input=InputOptions(cache=True)))
    assert judge.hopeless(cached, [*bound, measured(8, 120.0)]) == ""


def test_errors_count_between_the_batches_that_were_measured_with_the_same_settings() -> None:
    bound = [measured(n, 100.0, estimate=expected(150.0, 200.0, 250.0, "estimate"))
             for n in (8, 16, 32, 64)]  # fmt: skip
    known = [*bound, measured(70, 120.0, recipe=Recipe(execution="graph"))]
    inside, beyond = (
        trial(size, estimate=expected(150.0, 200.0, 250.0, "estimate")) for size in (24, 128)
    )
    assert "says 105 samples/s at most" in judge.hopeless(inside, known)
    assert judge.hopeless(beyond, known) == ""


def test_the_answer_is_the_one_with_fewest_changes_that_noise_does_not_tell_from_the_fastest() -> (
    None
):
    start = measured(0, 80.0, recipe=Recipe())
    plain = measured(1, 99.5, changes={"execution": "graph"})
    lucky = measured(2, 100.0, changes={"execution": "graph", "input.cache": "true"})
    slower = measured(3, 90.0, changes={"precision": "bfloat16"})
    order = judge.ranked([start, plain, lucky, slower], Recipe())
    assert [one.number for one in order] == [1, 2, 3]
    assert judge.ranked([measured(0, 101.0, recipe=Recipe()), plain, lucky], Recipe()) == ()
    few = [replace(one, rates_per_s=one.rates_per_s[:1]) for one in (start, plain, lucky)]
    assert [one.number for one in judge.ranked(few, Recipe())] == [2, 1]  # noise is not known
