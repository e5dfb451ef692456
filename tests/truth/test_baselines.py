from __future__ import annotations

import numpy as np
import pytest
from tests.judged import as_fit, everything, some

from tfdyno.catalog.gpus import find
from tfdyno_truth.baselines import TITLES, raw_times, unseen_times
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.ways import WAYS


def test_resnet_50_on_a_v100_by_hand() -> None:
    judged = some(
        lambda row: (
            row.function == "resnet50_v1_224"
            and row.slug.startswith("v100")
            and (row.precision, row.mode) == ("float32", "train")
        )
    )
    raw = raw_times(judged.design, FOLDER)
    row = judged.design.rows[0]
    gpu = find(row.slug)
    # about 3 x 2 x 3.9 GFLOP an image, the first layer has no input gradient; 15.7 TFLOP/s
    expected = 22.5e9 * row.batch_size / (gpu.sm_count * 128 * gpu.boost_hz)
    assert raw["flops"][0] == pytest.approx(expected, rel=0.05)


def test_a_finer_roofline_is_never_shorter() -> None:
    raw = raw_times(everything().design, FOLDER)
    assert set(raw) == set(TITLES)
    assert (raw["flops"] <= raw["program"] * 1.000001).all()
    assert (raw["program"] <= raw["kernels"] * 1.000001).all()
    assert (raw["flops"] == raw["utilisation"]).all()


def test_the_factor_never_sees_the_rows_that_it_is_for() -> None:
    judged = some(lambda row: row.framework == "tensorflow" and not row.launch_bound)
    design, learnable = judged.design, np.ones(len(judged.design.rows), dtype=bool)
    raw = raw_times(design, FOLDER)["flops"]
    by = WAYS["gpu"].label
    before = unseen_times(design, raw, "flops", learnable, by)
    mine = np.array([by(row) == "t4" for row in design.rows])
    others = unseen_times(
        type(design)(
            **{name: getattr(design, name) for name in design.__slots__}
            | {"log_step": np.where(mine, 9.0, design.log_step)}
        ),
        raw, "flops", learnable, by,
    )  # fmt: skip
    assert np.allclose(before[mine], others[mine])
    assert not np.allclose(before[~mine], others[~mine])


def test_a_model_that_was_left_out_has_no_utilisation_of_its_own() -> None:
    fitted = as_fit(everything())
    raw = raw_times(fitted.design, FOLDER)["flops"]
    by = WAYS["model"].label
    flops, own = (
        unseen_times(fitted.design, raw, name, fitted.learnable, by)
        for name in ("flops", "utilisation")
    )
    assert np.allclose(flops, own)
