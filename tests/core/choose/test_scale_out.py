from __future__ import annotations

from tests.advice import estimate, exactly

from tfdyno.core.choose.scale_out import ScaleOut, ScaleRow


def test_the_counts_are_those_of_the_rows() -> None:
    rows = tuple(
        ScaleRow(
            estimate=estimate(replicas=count),
            gain_ratio=exactly(1.0),
            efficiency_ratio=exactly(1.0),
            added_ratio=1.0,
            million_samples_usd=None,
            usd_per_epoch=None,
        )
        for count in (1, 4)
    )
    series = ScaleOut(gpu="t4", holds="global batch", rows=rows, pays_until=4, price=None)
    assert series.counts == (1, 4)
