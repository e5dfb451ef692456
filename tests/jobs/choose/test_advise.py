from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tfdyno.catalog.gpus import find, parse_list
from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Saving, Validation
from tfdyno.jobs.choose._request import run_of
from tfdyno.jobs.choose.advise import Outcome, Request, advise, check
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.view.base.documents import advice_document

MODEL = Path(__file__).parents[1].parent / "data" / "models" / "small.py"


def request(**changes: object) -> Request:
    base = Request(
        workload=parse_reference(f"{MODEL}:convnet"),
        batch_size=64,
        epochs=10,
        samples=1_000_000,
        route="quick",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole() -> Outcome:
    return advise(request())


def test_the_ranking_holds_every_card_in_order(whole: Outcome) -> None:
    ranking = whole.advice.ranking
    feasible = [one for one in ranking if one.verdict == "feasible"]
    costs = [one.cost_usd.best for one in feasible if one.cost_usd]
    assert costs == sorted(costs)
    assert {one.gpu for one in ranking} >= {"t4", "a100-sxm4-80gb", "gtx-1080", "rtx-5090"}
    assert ranking[: len(feasible)] == tuple(feasible)


def test_picks_are_rows_of_the_ranking_with_a_reason_and_details(whole: Outcome) -> None:
    advice = whole.advice
    assert [pick.title for pick in advice.picks] == ["cheapest", "balanced", "fastest"]
    for pick in advice.picks:
        assert pick.candidate in advice.ranking
        assert pick.reason
        assert pick.candidate.estimate.roofline


def test_the_document_is_the_same_without_the_details_that_a_page_shows(whole: Outcome) -> None:
    bare = advise(request(details=False))
    assert not any(row.estimate.roofline or row.estimate.explanation for row in bare.advice.ranking)
    documents = [advice_document(one.advice, one.trace) for one in (whole, bare)]
    assert to_json(documents[0]) == to_json(documents[1])


def test_cost_hours_and_energy_agree_with_the_estimate(whole: Outcome) -> None:
    one = next(c for c in whole.advice.ranking if c.verdict == "feasible" and not c.spot)
    step, offer = one.estimate, one.offer
    assert offer
    assert one.cost_usd
    assert one.usd_per_epoch
    steps = -(-10_000_000 // step.global_batch_size)
    hours = (steps * step.step_s.best + step.compile_s.best + 180) / 3600
    assert one.hours.best == pytest.approx(hours)
    assert one.cost_usd.best == pytest.approx(hours * offer.usd_per_h)
    assert one.usd_per_epoch.best == pytest.approx(one.cost_usd.best / 10)
    assert one.energy_kwh.best == pytest.approx(steps * step.energy_j_per_step.best / 3.6e6)


def test_the_start_of_a_machine_and_of_a_graph_run_counts() -> None:
    cards = Conditions(gpus=(find("rtx-3090"),), owned=(find("rtx-3090"),))
    ranking = advise(request(conditions=cards, epochs=1, samples=64)).advice.ranking
    step_s = {one.slug: one.estimate.step_s.best + one.estimate.compile_s.best for one in ranking}
    for one in ranking:
        if one.spot or not one.offer:
            continue
        boot_s = 0.0 if one.offer.provider == "owned" else 180.0
        build_s = 20.0 * one.count if one.estimate.execution == "graph" else 0.0
        assert one.hours.best * 3600 == pytest.approx(step_s[one.slug] + boot_s + build_s)
    assert {one.count for one in ranking} > {1}


def test_a_run_of_seconds_is_not_sent_to_several_gpus() -> None:
    advice = advise(request(epochs=1, samples=20_000)).advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.count == 1
    assert "3 min" in advice.assumptions["start-up"]
    assert advice.assumptions["memory"].endswith("else unverified on a device")


def test_rows_of_the_price_list_that_are_left_out_are_noted(tmp_path: Path) -> None:
    prices = tmp_path / "mine.csv"
    prices.write_text(
        "provider,instance,gpu_slug,gpu_count,vcpus,ram_gb,region,price_per_hour_usd,"
        "spot_per_hour_usd,date,source,date_precision\n"
        "me,box,t44,1,4,16,here,0.5,,2026-11,me,month\n"
    )
    advice = advise(request(conditions=Conditions(offers_file=prices))).advice
    assert advice.notes[0] == f"1 row of {prices} was left out: there is no GPU 't44'."


def test_a_card_without_an_offer_keeps_time_memory_and_what_it_cost(whole: Outcome) -> None:
    one = next(one for one in whole.advice.ranking if one.gpu == "gtx-1080")
    assert one.offer is None
    assert one.hours.best > 0
    assert one.estimate.device_memory_bytes.best > 0
    assert one.launch_price_usd == find("gtx-1080").launch_price_usd > 0
    dearest = f"(cost ${one.launch_price_usd:,.0f} when it came out)"
    assert one.verdict != "no offer" or dearest in one.reason


def test_several_gpus_hold_the_batch_of_each_and_take_fewer_steps(whole: Outcome) -> None:
    by_count = {one.count: one for one in whole.advice.ranking if one.gpu == "a100-sxm4-40gb"}
    assert by_count[8].estimate.batch_size == 64
    assert by_count[8].steps == -(-10_000_000 // 512)
    assert "learning rate" in whole.advice.assumptions["scaling"]


def test_steps_that_are_asked_for_are_taken_on_every_row() -> None:
    advice = advise(request(epochs=0, samples=0, steps=1000)).advice
    assert {one.steps for one in advice.ranking} == {1000}
    assert {one.count for one in advice.ranking} > {1}
    assert advice.assumptions["length"].startswith("1,000 optimizer steps on every row (as asked)")
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.count == 1  # more GPUs take as many steps and cost more


def test_several_gpus_that_serve_are_no_graph_job() -> None:
    workload = parse_reference(f"{MODEL}:convnet", mode="infer")
    conditions = Conditions(scenario="serve", gpus=(find("a100-sxm4-40gb"),))
    advice = advise(request(workload=workload, conditions=conditions)).advice
    assert {one.estimate.execution for one in advice.ranking} == {"xla"}
    by_count = {one.count: one.estimate for one in advice.ranking}
    assert by_count[8].step_s == by_count[1].step_s
    assert by_count[8].samples_per_s.best == pytest.approx(8 * by_count[1].samples_per_s.best)
    assert advice.assumptions["scaling"] == "every GPU serves batches of 64 by itself"


def test_a_card_that_is_owned_already_is_not_advised_to_be_bought() -> None:
    cards = Conditions(gpus=parse_list("rtx-3090,rtx-4090"))
    days = request(conditions=cards, epochs=50_000)
    bought = {change.condition for change in advise(days).advice.buy_or_rent}
    assert bought == {"buy RTX 3090", "buy RTX 4090"}
    mine = replace(days, conditions=replace(cards, owned=(find("rtx-3090"),)))
    left = {change.condition for change in advise(mine).advice.buy_or_rent}
    assert left == {"buy RTX 4090"}


def test_a_global_batch_is_held_and_numbers_that_cannot_share_it_are_left_out() -> None:
    outcome = advise(request(batch_size=0, global_batch_size=24))
    assert {one.estimate.global_batch_size for one in outcome.advice.ranking} == {24}
    assert 16 not in {one.count for one in outcome.advice.ranking}
    assert outcome.advice.run.holds == "global batch"


def test_limits_turn_the_rest_into_late_and_dear(whole: Outcome) -> None:
    fastest = whole.advice.pick("fastest")
    assert fastest
    tight = advise(request(deadline_h=fastest.candidate.hours.best / 2)).advice
    assert tight.picks == ()
    assert tight.headline.startswith("Nothing finishes within")
    poor = advise(request(budget_usd=1e-4)).advice
    assert poor.headline.startswith("Nothing stays within $0.0001: the cheapest is")


def test_cards_that_the_wheel_cannot_run_leave_the_picks_and_say_what_would_run_them() -> None:
    cards = Conditions(gpus=parse_list("gtx-1080,b200-sxm-180gb"))
    advice = advise(request(conditions=cards, tensorflow="2.16")).advice
    out = [one for one in advice.ranking if one.verdict == "cannot run"]
    for one in out:
        assert one.tensorflow.startswith("cannot: TensorFlow 2.16")
        assert all(pick.candidate.gpu != one.gpu for pick in advice.picks)


def test_a_card_that_xla_cannot_serve_is_ranked_by_what_runs_and_a_sentence_says_so() -> None:
    conditions = Conditions(gpus=parse_list("rtx-5090,rtx-4090"))
    own = advise(request(conditions=conditions, tensorflow="2.21")).advice
    by_xla = advise(request(conditions=conditions, tensorflow="2.21", execution="xla")).advice
    ran = {(one.gpu, one.count): one.estimate.execution for one in own.ranking}
    assert (ran["rtx-5090", 1], ran["rtx-4090", 1]) == ("graph", "xla")
    assert "graph where XLA cannot compile" in own.assumptions["execution"]
    (note,) = (one for one in own.notes if "XLA, the default" in one)
    assert note.startswith("GeForce RTX 5090 is answered for in graph execution")
    (warning,) = (one for one in by_xla.notes if "XLA, the default" in one)
    assert "fails with the wheel of TensorFlow" in warning
    assert {one.estimate.execution for one in by_xla.ranking} == {"xla"}


def test_an_owned_card_costs_electricity_and_may_win() -> None:
    owned = Conditions(owned=(find("rtx-3090"),))
    advice = advise(request(conditions=owned)).advice
    mine = next(one for one in advice.ranking if one.offer and one.offer.provider == "owned")
    assert mine.cost_usd
    assert mine.cost_usd.best == pytest.approx(mine.energy_kwh.best * 0.17)
    assert "electricity" in advice.assumptions


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (156_250, 10_000_000, 10, "as asked")),
        ({"epochs": 0, "samples": 0, "steps": 500}, (500, 32_000, 0, "as asked")),
        ({"epochs": 0, "samples": 640}, (10, 640, 1, "as asked")),
        ({"epochs": 3, "samples": 0}, (46_875, 3_000_000, 3, "assumed")),
        ({"epochs": 0, "samples": 0}, (15_625, 1_000_000, 1, "assumed")),
    ],
)
def test_the_length_of_the_run_is_as_asked_or_assumed(
    whole: Outcome, changes: dict[str, object], expected: tuple[object, ...]
) -> None:
    run = run_of(request(**changes), whole.trace, 64)
    assert (run.steps, run.samples, run.epochs, run.length_source) == expected


def test_the_length_of_the_run_comes_from_the_script_where_it_says_so(whole: Outcome) -> None:
    script = replace(whole.trace, samples_per_epoch=6400, epochs=5)
    run = run_of(request(epochs=0, samples=0), script, 64)
    assert (run.steps, run.epochs, run.length_source) == (500, 5, "from the script")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (1280, 5)),
        ({"epochs": 2}, (1280, 2)),
        ({"samples": 64_000}, (12_800, 5)),  # split as the script splits
        ({"steps": 500}, (0, 0)),
    ],
)
def test_validation_of_the_run_is_that_of_the_script(
    whole: Outcome, changes: dict[str, int], expected: tuple[int, int]
) -> None:
    script = replace(
        whole.trace, samples_per_epoch=6400, epochs=5, validation=Validation(samples=1280)
    )
    run = run_of(request(**{"epochs": 0, "samples": 0, **changes}), script, 64)
    assert (run.validation_samples, run.validation_passes) == expected


@pytest.mark.parametrize("validation", [None, Validation(samples=0), Validation(samples=None)])
def test_validation_that_is_not_known_is_not_counted(
    whole: Outcome, validation: Validation | None
) -> None:
    script = replace(whole.trace, samples_per_epoch=6400, epochs=5, validation=validation)
    run = run_of(request(epochs=0, samples=0), script, 64)
    assert (run.validation_samples, run.validation_passes) == (0, 0)


@pytest.mark.parametrize(
    ("savings", "fewest", "most"),
    [
        ((), 0, 0),
        ((Saving(),), 5, 5),
        ((Saving(only_best=True),), 1, 5),
        ((Saving(every_batches=200), Saving(only_best=True)), 3, 7),  # 500 steps, 5 epochs
    ],
)
def test_checkpoints_of_the_run_are_those_of_the_callbacks(
    whole: Outcome, savings: tuple[Saving, ...], fewest: int, most: int
) -> None:
    script = replace(whole.trace, samples_per_epoch=6400, epochs=5, savings=savings)
    run = run_of(request(epochs=0, samples=0), script, 64)
    kept = sum(one.bytes for one in script.tensors if one.role in {"weight", "state", "optimizer"})
    assert kept > 4 * script.parameter_count
    assert (run.fewest_checkpoint_bytes, run.checkpoint_bytes) == (fewest * kept, most * kept)


VALIDATING = """
import keras, numpy as np
net = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
net.compile("sgd", "mse")
x, y = np.zeros((6400, 16)), np.zeros((6400, 4))
net.fit(x, y, epochs=50, validation_data=(x[:3200], y[:3200]), validation_freq=10)
"""


def test_validation_of_a_script_is_in_hours_and_cost_and_told_as_a_part(tmp_path: Path) -> None:
    """5 passes of 100 batches of 32 beside 50 of 200 steps, each about a third of a step."""
    script = tmp_path / "train.py"
    script.write_text(VALIDATING)
    workload, cards = parse_reference(str(script)), Conditions(gpus=(find("t4"),), counts=(1,))
    advice = advise(request(workload=workload, conditions=cards, batch_size=0, epochs=0,
                            samples=0)).advice  # fmt: skip
    assert (advice.run.validation_samples, advice.run.validation_passes) == (3200, 5)
    assert advice.assumptions["validation"].startswith("validation on 3,200 samples 5 times")
    pick = advice.pick("balanced")
    assert pick
    one, part, step = pick.candidate, pick.candidate.part_h("validation"), pick.candidate.estimate
    assert part
    assert step.forward_compile_s
    overhead = 1.08 if one.spot else 1.0
    passes_s = 500 * step.step_s.best * step.forward_ratio
    assert part.best * 3600 == pytest.approx(passes_s + step.forward_compile_s.best)
    assert 0.0 < step.forward_ratio < 1.0
    training_s = 10_000 * step.step_s.best + step.compile_s.best
    whole_s = overhead * (training_s + part.best * 3600) + 180.0
    assert one.hours.best * 3600 == pytest.approx(whole_s)
    assert sum(each.hours.best for each in one.hours_parts) == pytest.approx(one.hours.best)


def test_validation_whose_length_cannot_be_read_is_said_to_be_missing(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        VALIDATING.replace("(x[:3200], y[:3200]), validation_freq=10", "(z for z in [(x, y)])")
    )
    workload, cards = parse_reference(str(script)), Conditions(gpus=(find("t4"),), counts=(1,))
    advice = advise(request(workload=workload, conditions=cards, batch_size=0, epochs=0,
                            samples=0)).advice  # fmt: skip
    assert advice.run.validation_passes == 0
    assert advice.notes[0].startswith("Validation is not in hours and cost: ")


def test_cards_that_no_one_would_buy_for_a_short_run_are_left_out() -> None:
    cards = Conditions(gpus=parse_list("rtx-3090,rtx-4090"))
    short = advise(request(conditions=cards, epochs=1, samples=64_000)).advice
    assert short.buy_or_rent == ()
    dear = Conditions(gpus=parse_list("rtx-4090"), usd_per_h=50.0)
    assert advise(request(conditions=dear, epochs=1, samples=64_000)).advice.buy_or_rent == ()
    unknown = advise(request(conditions=cards, epochs=0, samples=0)).advice
    assert unknown.run.length_source == "assumed"
    assert {change.condition for change in unknown.buy_or_rent} == {"buy RTX 3090", "buy RTX 4090"}
    assert all("runs like" not in change.consequence for change in unknown.buy_or_rent)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 5}, "give --steps, or --epochs and --samples, not both"),
        ({"global_batch_size": 64}, "give --batch-size or --global-batch, not both"),
        ({"tensorflow": "newest"}, "'newest' is no TensorFlow release"),
        ({"tensorflow": "1.2"}, "TensorFlow 1.2 is too old"),
        ({"batch_size": 1 << 30}, "is not possible"),
        (
            {"conditions": Conditions(scenario="industrial", spot=True)},
            "--spot contradicts --scenario industrial",
        ),
    ],
)
def test_contradictions_are_refused_before_any_work(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check(request(**changes))


def test_what_would_change_the_answer_is_computed(whole: Outcome) -> None:
    conditions = {change.condition for change in whole.advice.changes}
    pick = whole.advice.pick("balanced")
    assert pick
    if pick.candidate.spot:
        assert "no spot instances" in conditions
    assert any(text.startswith("batch above") for text in conditions)
    for change in whole.advice.buy_or_rent:
        assert change.condition.startswith("buy ")


def test_the_answer_is_refined_after_each_family_that_was_compiled() -> None:
    cards = Conditions(gpus=parse_list("t4,h100-sxm5-80gb"))
    seen: list[tuple[str, int]] = []

    def exact_rows(outcome: Outcome) -> int:
        routes = (one.estimate.made_by["memory"] for one in outcome.advice.ranking)
        return sum(route == "exact" for route in routes)

    last = advise(
        replace(request(conditions=cards, route="exact"), precision="mixed_float16"),
        first=lambda early: seen.append(("first", exact_rows(early))),
        refined=lambda family, so_far: seen.append((family, exact_rows(so_far))),
    )
    assert seen[0][0] == "first"
    assert len(seen) == 3  # the quick answer, then each family: a proof of the pick follows both
    under_xla = [one for one in last.advice.ranking if one.estimate.execution == "xla"]
    assert seen[0][1] == 0 < seen[1][1] < seen[2][1] == exact_rows(last) == len(under_xla)
    assert last.advice.exact  # rows under a strategy run without XLA: nothing compiles them
    assert len(under_xla) < len(last.advice.ranking)


def test_machines_together_are_weighed_over_their_network() -> None:
    card = find("h100-sxm5-80gb")
    found = advise(
        request(conditions=Conditions(gpus=(card,), max_nodes=2), network="ib-ndr-400")
    ).advice
    wide = [one for one in found.ranking if one.count == 16]
    assert wide
    for one in wide:
        assert (one.estimate.nodes, one.estimate.network) == (2, "8xib-ndr-400")
        assert one.offer
        assert one.offer.instance.startswith("2 x ")


def test_the_recommended_card_is_told_over_the_number_of_gpus(whole: Outcome) -> None:
    best = whole.advice.pick("balanced")
    assert best
    (series,) = whole.advice.scaling
    assert series.gpu == best.candidate.gpu
    assert series.counts[0] == 1
