"""From a log of exhausted memory to a batch that fits, in one sentence whatever the estimate."""

from __future__ import annotations

import pytest
from tests.advice import estimate

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.doctor.finding import Diagnosis, Evidence, Finding, FixStep
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.jobs.doctor.doctor import Examined
from tfdyno.jobs.memory.fitting_batch import fitting_sentence, with_fitting_batch

OOM = Finding(
    cause="mem.oom_model", verdict="proven", severity="error", summary="", why="",
    evidence=(Evidence(text="OOM", source="line 1"),), fix=(FixStep(text="Take less."),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("most", "verified", "said"),
    [
        (2088, True, "a batch of up to 2,088 per replica fits, by tfdyno estimate (compiled)."),
        (0, False, "not even a batch of 1 per replica fits, by tfdyno estimate (computed)."),
        (
            None,
            False,
            "the batch is part of the model, so that no smaller one can be named, "
            "by tfdyno estimate (computed).",
        ),
    ],
)
def test_the_largest_batch_is_told_also_where_there_is_none(
    most: int | None, verified: bool, said: str
) -> None:
    found = estimate(max_batch_size=most, max_batch_verified=verified)
    assert fitting_sentence("train.py", find("t4"), found) == f"train.py on Tesla T4: {said}"


def quiet(_stage: str) -> None:
    raise AssertionError("nothing may be traced")


def test_without_exhausted_memory_nothing_is_traced() -> None:
    examined = Examined(diagnosis=Diagnosis(findings=()), facts=MachineFacts())
    with pytest.raises(UsageError) as told:
        with_fitting_batch(examined, "train.py", "t4", quiet)
    assert str(told.value) == ("--workload has no use here: the log shows no exhausted GPU memory.")


def test_a_log_without_a_card_asks_for_one() -> None:
    examined = Examined(diagnosis=Diagnosis(findings=(OOM,)), facts=MachineFacts())
    with pytest.raises(UsageError, match="the log does not name the GPU; say it with --gpu"):
        with_fitting_batch(examined, "train.py", "", quiet)
