"""Made-up tunings that the tests of texts and documents share."""

from __future__ import annotations

from dataclasses import replace

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.fix_proof import FixProof
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.core.train.search_space import SearchSpace
from tfdyno.core.train.tuning import Trial, TrialEstimate, Tuning

FAST = from_settings({"execution": "graph", "steps_per_execution": "8"})
LARGE = from_settings({"batch_size": "128"})
START = Trial(
    number=0, recipe=Recipe(), status="measured", ran=True, batch_size=32,
    rates_per_s=(100.0, 101.0, 99.0), samples_per_s=100.0, interval_per_s=(97.0, 103.0),
    peak_memory_bytes=1 << 30, measurement="abc",
)  # fmt: skip
QUICK = replace(
    START, number=1, recipe=FAST, changes={"execution": "graph", "steps_per_execution": "8"},
    samples_per_s=180.0, interval_per_s=(175.0, 185.0),
)  # fmt: skip
EARLY = replace(
    START, number=2, recipe=from_settings({"execution": "xla"}), changes={"execution": "xla"},
    status="pruned", samples_per_s=60.0, interval_per_s=(0.0, 0.0),
    reason="After 1 of 3 runs it is 40% slower than trial 0, surely (99%).",
)  # fmt: skip
UNFIT = Trial(
    number=3, recipe=LARGE, changes={"batch_size": "128"}, status="not_fit", batch_size=128,
    changes_batch=True, reason="The estimate says 9.3 GiB of memory at least.",
    estimate=TrialEstimate(made_by="estimate", limit_bytes=8e9,
                           memory_bytes=Interval(low=9e9, best=10e9, high=11e9)),
)  # fmt: skip
SAME = Trial(number=4, recipe=FAST, status="same", same_as=1, reason="It is the recipe of trial 1.")
PROOF = FixProof(
    cause="tuning", settings=QUICK.changes, verdict="faster", ratio=1.8, interval=(1.7, 1.9),
    confidence_ratio=0.99, runs=4, before_s=0.32, after_s=0.178, kept=True,
    reason="It is faster, and the losses agree.", measurements=("a", "b"),
)  # fmt: skip
TOLD = Tuning(
    reference="train.py", title="convnet", start=Recipe(), recipe=FAST, best=1, proof=PROOF,
    space=SearchSpace(choices={"batch_size": (32, 64, 128), "execution": ("graph", "xla"),
                               "steps_per_execution": (1, 8)}),
    trials=(START, QUICK, EARLY, UNFIT, SAME), device="cpu", device_name="2 CPUs (a CPU)",
    update_samples=32, runs=3, asked_trials=20, left=8, confidence_ratio=0.99, spread_ratio=0.012,
    notes=("Only samples per second are tuned.",),
)  # fmt: skip
CHANGED = replace(
    TOLD, trials=(START, replace(UNFIT, status="measured", ran=True, samples_per_s=300.0)), best=3,
    recipe=LARGE, proof=replace(PROOF, ratio=3.0, interval=(2.8, 3.2)),
)  # fmt: skip
