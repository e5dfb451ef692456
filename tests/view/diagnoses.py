"""A diagnosis as the views are given it, with numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfdyno.core.doctor.finding import Evidence, FixStep
from tfdyno.core.measure.bottleneck import Bottleneck, Gain, StageSpeed, StepDiagnosis
from tfdyno.core.measure.fix_proof import Agreement, FixProof, ProvenDiagnosis
from tfdyno.core.measure.step_facts import (
    HostFacts,
    InputFacts,
    StageFacts,
    StallFacts,
    StepFacts,
    TimelineFacts,
)
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.view.diagnose.document import DiagnoseReport

SETTINGS = {"input.parallel_calls": "-1", "input.prefetch": "-1"}
PLACE = "train.py:41"
FACTS = StepFacts(
    title="resnet", device="cpu", source="run", batch_size=256, steps_seen=60,
    step_s=(0.411, 0.415, 0.418, 0.421, 0.426), held_s=(0.16,), host=HostFacts(
        cpus=2, usable_cpus=2.0),
    input=InputFacts(
        batch_s=(0.25, 0.26),
        stages=(
            StageFacts(title="from_tensor_slices", kind="from_tensor_slices"),
            StageFacts(title="map(parse)", kind="map", place=PLACE, own_s=0.24),
            StageFacts(title="batch", kind="batch", place=PLACE),
        ),
    ),
    notes=("The profile holds 20 steps.",),
)  # fmt: skip
SERIAL = Bottleneck(
    bottleneck_class="input",
    cause="input.sequential_map",
    summary="The step waits for input: 61 % of its time.",
    evidence=(
        Evidence(text="map(parse) takes 240 ms of a batch's 255 ms", source=PLACE),
        Evidence(text="one of 2 CPUs is busy", source="the pipeline by itself"),
    ),
    fix=(FixStep(text="Let map work on several elements at once.",
                 command="ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)"),),
    expected_gain=Gain(low=2.3, best=2.45, high=2.6),
    settings=SETTINGS,
    place=PLACE,
)  # fmt: skip
CACHE = Bottleneck(
    bottleneck_class="input",
    cause="input.no_cache",
    summary="The same images are decoded in every epoch.",
    evidence=(Evidence(text="120 MiB of elements", source="the pipeline"),),
    fix=(FixStep(text="Keep them in memory with cache()."),),
    expected_gain=Gain(low=1.1, best=1.15, high=1.2),
    settings={"input.cache": "true"},
)
LEAK = Bottleneck(
    bottleneck_class="leak",
    cause="leak.tensors_kept",
    summary="Memory grows by 4 MiB a step.",
    evidence=(Evidence(text="list of 1,204 tensors", source="train.py:31"),),
    fix=(FixStep(text="Append float(loss) instead of the tensor."),),
)
HEALTHY = Bottleneck(
    bottleneck_class="healthy",
    cause="healthy.no_lever",
    summary="Nothing is known that gains 10 %.",
    evidence=(Evidence(text="the step keeps 1.9 of 2 CPUs busy", source="60 steps"),),
    fix=(FixStep(text="Leave it as it is."),),
    expected_gain=Gain(low=1.0, best=1.0, high=1.0),
)
# 0.255 + 0.117 + 0.038 + 0.008 = 0.418
SPLIT_S = {"input": 0.255, "compute": 0.117, "host": 0.038, "launch": 0.008, "copy": 0.0}
DIAGNOSIS = StepDiagnosis(
    title="resnet", step_s=0.418, split_s=SPLIT_S, compute_s={"gemm": 0.017, "conv": 0.1},
    primary=SERIAL, findings=(SERIAL, CACHE), notes=("One loop was looked at.",),
)  # fmt: skip
AGREEMENT = Agreement(
    agrees=True, difference_ratio=2e-4, tolerance_ratio=1e-3, steps=16, values=2,
    why="the same elements in the same order",
)  # fmt: skip
PROOF = FixProof(
    cause=SERIAL.cause, settings=SETTINGS, verdict="faster", ratio=2.41, interval=(2.35, 2.47),
    confidence_ratio=0.99, runs=5, before_s=0.418, after_s=0.173, agreement=AGREEMENT, kept=True,
    reason="It is faster, and the losses agree.", measurements=("a" * 12, "b" * 12),
)  # fmt: skip
SLOWER = FixProof(
    cause=CACHE.cause, settings=CACHE.settings, verdict="no_difference", ratio=1.004,
    interval=(0.98, 1.03), confidence_ratio=0.99, runs=5, before_s=0.173, after_s=0.172,
    reason="It is not faster: the interval of 0.980–1.030 holds 1.",
)  # fmt: skip


STALLS = (
    StallFacts(step=21, whole_s=1.31, validation_s=0.8, is_first_of_epoch=True),
    StallFacts(step=33, whole_s=0.9, callback_s=0.5),
    StallFacts(step=41, whole_s=1.6, retrace_s=1.1),
    StallFacts(step=45, whole_s=0.8, is_first_of_epoch=True),
    StallFacts(step=52, whole_s=0.72),
)
TIMELINE = TimelineFacts(
    whole_s=tuple(0.415 + 0.004 * ((n * 7) % 5 - 2) for n in range(60)), stalls=STALLS,
    what="after warm-up",
)  # fmt: skip
# 1 + 240 + 14 = 255 ms a batch of 256
STAGED = replace(
    DIAGNOSIS, held_s=0.16, batch_s=0.255,
    stages=(
        StageSpeed(title="from_tensor_slices", batch_s=0.001, samples_per_s=256_000.0),
        StageSpeed(title="map(parse)", place=PLACE, batch_s=0.24, samples_per_s=256 / 0.24,
                   bytes_per_s=3e7),
        StageSpeed(title="batch", place=PLACE, batch_s=0.014, samples_per_s=256 / 0.014),
    ),
)  # fmt: skip
# 0.117 + 0.039 + 0.009 + 0.008 = 0.173
AFTER = replace(
    STAGED, step_s=0.173, primary=HEALTHY, findings=(HEALTHY,),
    split_s={"input": 0.009, "compute": 0.117, "host": 0.039, "launch": 0.008},
)  # fmt: skip


def whole(**fields: Any) -> DiagnoseReport:
    """With all that a look can tell, before any fix."""
    return told(STAGED, facts=replace(FACTS, timeline=TIMELINE), made_on="2026-11-22", **fields)


def looked_again(**fields: Any) -> DiagnoseReport:
    """With all that a look can tell, after --fix, and the steps looked at once more."""
    one = fixed(facts=replace(FACTS, timeline=TIMELINE), made_on="2026-11-22", **fields)
    found = one.proven.diagnosis
    staged = replace(STAGED, primary=found.primary, findings=found.findings)
    return replace(one, proven=replace(one.proven, diagnosis=staged, after=AFTER))


def told(diagnosis: StepDiagnosis = DIAGNOSIS, **fields: Any) -> DiagnoseReport:
    """Before any fix."""
    base = DiagnoseReport(
        proven=ProvenDiagnosis(diagnosis=diagnosis, recipe=Recipe()), facts=FACTS,
        reference="train.py", base=Recipe(),
    )  # fmt: skip
    return replace(base, **fields)


def fixed(**fields: Any) -> DiagnoseReport:
    """After --fix, of which the first is kept and the second is not."""
    gained = replace(SERIAL, proven_gain=Gain(low=2.35, best=2.41, high=2.47))
    diagnosis = replace(DIAGNOSIS, primary=gained, findings=(gained, CACHE))
    proven = ProvenDiagnosis(
        diagnosis=diagnosis, recipe=from_settings(SETTINGS), proofs=(PROOF, SLOWER)
    )
    return told(proven=proven, tried=True, **fields)


def only(one: Bottleneck) -> StepDiagnosis:
    """With one finding."""
    return replace(DIAGNOSIS, primary=one, findings=(one,))
