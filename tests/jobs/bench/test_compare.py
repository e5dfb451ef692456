from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.measurements import ENVIRONMENT, measurement

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Card, Measurement
from tfdyno.core.measure.measurement_document import bench_document
from tfdyno.jobs.bench.compare import compare_all, priced
from tfdyno.model.measure.summary import summary

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path, one: Measurement) -> str:
    path.write_bytes(to_json(bench_document(one, summary(one))))
    return str(path)


def levels(step_s: float, **changes: object) -> Measurement:
    return measurement([[step_s * (1 + 0.001 * at)] * 5 for at in range(5)], **changes)


def test_every_later_measurement_is_compared_with_the_first(tmp_path: Path) -> None:
    places = [written(tmp_path / f"{step_s}.json", levels(step_s)) for step_s in (0.4, 0.2, 0.8)]
    sides = compare_all(places)
    assert [(one.name, one.place) for one in sides] == list(zip("ABC", places, strict=True))
    assert sides[0].comparison is None
    ratios = [one.comparison.ratio for one in sides if one.comparison]
    assert ratios == pytest.approx([2.0, 0.5])


def test_a_measured_gpu_is_priced_with_the_catalogue(tmp_path: Path) -> None:
    environment = replace(ENVIRONMENT, device="gpu", cards=(Card(name="NVIDIA L4", slug="l4"),))
    place = written(tmp_path / "gpu.json", levels(0.1, environment=environment))
    cpu, gpu = compare_all([written(tmp_path / "cpu.json", levels(0.2)), place])
    assert not cpu.priced.offers
    assert [one.offer.spot for one in gpu.priced.offers] == [False, True]
    for one in gpu.priced.offers:
        # 64 samples in 0.1002 s, the median run
        assert one.samples_per_usd == pytest.approx(64 / 0.1002 * 3600 / one.usd_per_h)
        assert one.offer.priced_on
        assert one.offer.source


def test_one_measurement_alone_compares_with_nothing(tmp_path: Path) -> None:
    place = written(tmp_path / "a.json", levels(0.1))
    with pytest.raises(UsageError, match="nothing to compare with"):
        compare_all([place])
    assert len(compare_all([place], least=1)) == 1
    with pytest.raises(UsageError, match="too many"):
        compare_all([place] * 27)


def test_one_measurement_is_priced_by_the_cheapest_offers_of_its_card() -> None:
    card = replace(ENVIRONMENT, device="gpu", cards=(Card(name="Tesla T4", slug="t4"),))
    one = measurement([[0.1] * 5] * 3, environment=card)
    found = priced(one, summary(one)).offers
    assert {o.offer.gpu_slug for o in found} == {"t4"}
    assert found[0].samples_per_usd == pytest.approx(640 * 3600 / found[0].usd_per_h)
    assert priced(measurement([[0.1] * 5] * 3), summary(one)).offers == ()
