"""What a fit writes: constants, pages and scores together, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.judged import as_fit, some
from tests.truth.test_scaling import judged

from tfdyno.catalog.time_model import read_time_model, time_model
from tfdyno.core.base.errors import UsageError
from tfdyno_truth import publish, ratchet, scaling, scaling_report
from tfdyno_truth.accuracy import accuracy
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.publish import Refit
from tfdyno_truth.ratchet import read_scores, worsened
from tfdyno_truth.run import TIME_MODEL

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno_truth.judge import Score


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "time_model.toml").write_bytes(TIME_MODEL.read_bytes())
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    monkeypatch.setattr(publish, "SCORES", tmp_path / "scores.toml")
    monkeypatch.setattr(publish, "TIME_MODEL", tmp_path / "time_model.toml")
    return tmp_path


@pytest.fixture(scope="module")
def refit() -> Refit:
    rows = some(lambda row: row.slug in ("t4", "v100-sxm2-16gb"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling, "MOST_EVALUATIONS", 2)  # what is written counts, not how good it is
        found = accuracy(as_fit(rows), FOLDER, lambda _stage: None, rivals=False)
    return Refit(accuracy=found, worse=())


def worse(found: Refit) -> Refit:
    return Refit(accuracy=found.accuracy, worse=("gpu left out, all: mean 15 % -> 16 %",))


def mean_of(found: Refit) -> Score:
    return found.accuracy.sheets["gpu"].whole[0].score


def test_all_files_are_of_one_fit(place: Path, refit: Refit) -> None:
    publish.publish(refit, "")
    stored = read_scores(place / "scores.toml")
    assert stored
    assert stored.constants == ratchet.fingerprint(read_time_model(place / "time_model.toml"))
    assert stored.ways["gpu"]["TensorFlow"].mean == pytest.approx(mean_of(refit).mean, abs=1e-4)
    told = f"{mean_of(refit).mean:.1%}"
    assert told in (place / "docs" / "accuracy.md").read_text()
    assert told in (place / "docs" / "accuracy-plots.html").read_text()
    assert worsened(stored, stored) == ()


def test_the_block_about_todays_software_stays_under_the_head(place: Path, refit: Refit) -> None:
    text = place / "docs" / "accuracy.md"
    publish.publish(refit, "")
    without = text.read_text()
    block = "<!-- today -->\n\n## Software of today\n\n8 %\n\n<!-- /today -->"
    text.write_text(f"# Accuracy\n\nold\n\n{block}\n\nold\n")
    publish.publish(refit, "")
    head, _, rest = text.read_text().partition(f"{block}\n\n")
    assert head + rest == without
    assert head.startswith("# Accuracy\n\nWritten by")
    assert head.count("\n\n") == 2


def test_worse_scores_without_a_reason_write_nothing(place: Path, refit: Refit) -> None:
    with pytest.raises(UsageError, match="worse scores need a reason"):
        publish.publish(worse(refit), "")
    assert sorted(path.name for path in place.rglob("*") if path.is_file()) == ["time_model.toml"]
    assert (place / "time_model.toml").read_bytes() == TIME_MODEL.read_bytes()


def test_a_reason_is_kept_with_what_got_worse_also_by_later_fits(place: Path, refit: Refit) -> None:
    publish.publish(worse(refit), "a card was wrong")
    publish.publish(refit, "")
    stored = read_scores(place / "scores.toml")
    assert stored
    (accepted,) = stored.accepted
    assert (accepted.reason, accepted.worse) == ("a card was wrong", worse(refit).worse)


def test_only_fitted_constants_change(place: Path, refit: Refit) -> None:
    publish.publish(refit, "")
    after = read_time_model(place / "time_model.toml").parameters
    exchange = set(refit.accuracy.exchange)
    for name, parameter in time_model().parameters.items():
        if name not in exchange:
            assert after[name].value == pytest.approx(parameter.value, rel=1e-4)


def test_a_fit_of_the_exchange_alone_leaves_the_rest_as_it_was(place: Path, refit: Refit) -> None:
    publish.publish(refit, "")
    before = read_time_model(place / "time_model.toml").parameters
    steps = read_scores(place / "scores.toml")
    publish.publish_scaling(judged())
    stored, page = read_scores(place / "scores.toml"), (place / "docs" / "accuracy.md").read_text()
    shipped = read_time_model(place / "time_model.toml")
    assert steps
    assert stored
    assert stored.constants == ratchet.fingerprint(shipped)
    assert stored.ways == steps.ways
    assert stored.scaling["model"] == judged().spreads["model"]
    for name, value in judged().constants.items():
        assert shipped.parameters[name].value == pytest.approx(value, rel=1e-4)
    changed = {n for n, p in shipped.parameters.items() if p.value != before[n].value}
    assert changed <= set(judged().constants)
    assert scaling_report.answer(judged()) in page
    assert page.count("## Several GPUs") == page.count("## Constants") == 1
    assert "The 3 worst on several GPUs" in (place / "docs" / "accuracy-plots.html").read_text()
    assert publish.worse_scaling(judged()) == ()


def test_the_exchange_alone_cannot_be_written_before_a_fit(place: Path) -> None:
    assert not (place / "scores.toml").exists()
    with pytest.raises(UsageError, match="run tfdyno-truth fit"):
        publish.publish_scaling(judged())
