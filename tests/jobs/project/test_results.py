from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests import past_runs

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.project import results as module
from tfdyno.jobs.project.results import Reader, known_kind
from tfdyno.ui.answers import results_answer

if TYPE_CHECKING:
    from tfdyno.jobs.project.results import Result

DATA = Path(__file__).parents[2] / "data"
KINDS = {
    "advise": "advise", "bench": "bench", "bench-fast": "bench", "diagnose": "diagnose",
    "edge": "edge", "estimate": "estimate", "export": "export", "load": "load",
    "models": "models", "size": "size", "train": "train", "tune": "tune",
}  # fmt: skip


def by_place(reader: Reader) -> dict[str, Result]:
    return {one.place: one for one in reader.shelf().results}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(DATA / "project", tmp_path / "answers")
    return tmp_path


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_every_recorded_document_is_known_by_its_own_keys(name: str, kind: str) -> None:
    assert known_kind(past_runs.document(name))[0] == kind


def test_all_documents_of_a_folder_stand_with_their_figures(folder: Path) -> None:
    found = by_place(Reader(folder=folder))
    assert {place: one.told.kind for place, one in found.items()} == {
        f"answers/{name}.json": kind for name, kind in KINDS.items()
    }
    for one in found.values():
        assert one.told.figures or one.told.kind in ("diagnose", "models", "edge")
        assert one.told.document == {}  # so that hundreds of them stay small
    assert "samples/s" in found["answers/bench.json"].told.answer


def test_the_newest_stands_first(folder: Path) -> None:
    for age, name in enumerate(("tune", "bench", "advise")):
        os.utime(folder / "answers" / f"{name}.json", (2e9 - age, 2e9 - age))
    found = [one.place for one in Reader(folder=folder).shelf().results]
    assert found[:3] == [f"answers/{name}.json" for name in ("tune", "bench", "advise")]


def test_two_benches_are_compared_by_their_samples(folder: Path) -> None:
    reader = Reader(folder=folder)
    found = by_place(reader)
    gained = reader.difference(found["answers/bench.json"].id, found["answers/bench-fast.json"].id)
    speed = next(one for one in gained if one.before.name == "throughput")
    assert (speed.way, speed.verdict) == ("samples", "no_difference")
    assert speed.before.value == past_runs.document("bench")["throughput_per_s"]
    assert speed.after.value == past_runs.document("bench-fast")["throughput_per_s"]


def test_results_of_two_kinds_share_only_figures_of_one_name(folder: Path) -> None:
    reader = Reader(folder=folder)
    found = by_place(reader)
    shared = reader.difference(found["answers/diagnose.json"].id, found["answers/bench.json"].id)
    names = [(one.before.name, one.after.name) for one in shared]
    assert names == [("throughput", "throughput"), ("step", "step")]
    assert {one.verdict for one in shared} == {"not_compared"}
    assert reader.difference(found["answers/bench.json"].id, found["answers/edge.json"].id) == ()


def test_a_result_that_is_gone_is_told(folder: Path) -> None:
    reader = Reader(folder=folder)
    found = by_place(reader)
    (folder / "answers" / "bench.json").unlink()
    with pytest.raises(UsageError, match="there is no result"):
        reader.difference(found["answers/bench.json"].id, found["answers/edge.json"].id)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "null", '{"a": 1}', "\x00\xff", "[" * 100_000, '{"format": 3}']
)
def test_what_is_no_result_or_half_written_is_left_out(folder: Path, text: str) -> None:
    (folder / "other.json").write_text(text, encoding="latin-1")
    found = Reader(folder=folder).shelf()
    assert len(found.results) == len(KINDS)
    assert found.troubles == ()


def test_a_file_that_becomes_whole_is_read_again(folder: Path) -> None:
    whole = (folder / "answers" / "bench.json").read_text()
    late = folder / "late.json"
    late.write_text(whole[: len(whole) // 2])
    reader = Reader(folder=folder)
    assert "late.json" not in by_place(reader)
    late.write_text(whole)
    assert by_place(reader)["late.json"].told.kind == "bench"


def test_links_and_hidden_folders_are_not_followed(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (folder / "mine").mkdir()
    elsewhere.mkdir()
    shutil.copy(DATA / "project" / "bench.json", elsewhere / "secret.json")
    (folder / "mine" / "link.json").symlink_to(elsewhere / "secret.json")
    (folder / "mine" / "linked").symlink_to(elsewhere)
    (folder / ".hidden").mkdir()
    shutil.copy(DATA / "project" / "bench.json", folder / ".hidden" / "bench.json")
    found = by_place(Reader(folder=folder / "mine"))
    assert found == {}
    assert not [place for place in by_place(Reader(folder=folder)) if ".hidden" in place]


def test_steps_of_a_projects_runs_are_results_too(tmp_path: Path) -> None:
    past_runs.two_runs(tmp_path)
    reader = Reader(folder=tmp_path)
    found = reader.shelf()
    assert found.troubles == ()
    speeds = [one for one in found.results if one.place.endswith(":speed")]
    assert len(speeds) == 2
    assert {one.told.kind for one in speeds} == {"bench"}
    newer, older = speeds
    assert newer.made_at > older.made_at
    assert any(one.before.name == "throughput" for one in reader.difference(older.id, newer.id))


def test_a_damaged_history_is_told_and_the_others_count(folder: Path) -> None:
    (folder / "tfdyno-project").mkdir()
    (folder / "tfdyno-project" / "history.sqlite").write_bytes(b"no database" * 100)
    found = Reader(folder=folder).shelf()
    assert len(found.results) == len(KINDS)
    assert len(found.troubles) == 1
    assert found.troubles[0].startswith("tfdyno-project: ")


def test_of_too_many_the_newest_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RESULTS", 5)
    found = Reader(folder=folder).shelf()
    assert (len(found.results), found.left_out) == (5, len(KINDS) - 5)


def test_a_file_name_that_is_no_utf_8_can_be_sent(folder: Path) -> None:
    source = json.dumps(past_runs.document("bench"))
    named = Path(os.fsdecode(os.fsencode(folder) + b"/bad-\xff.json"))
    named.write_text(source)
    named.with_name(os.fsdecode(b"bad-\xfe.json")).write_text(source)
    reader = Reader(folder=folder)
    found = [one for one in reader.shelf().results if one.place == "bad-\ufffd.json"]
    assert len({one.id for one in found}) == 2
    assert reader.difference(found[0].id, found[1].id)
    assert json.loads(results_answer(reader))["folder"] == str(folder)


def test_a_name_with_colons_is_a_file_like_others(folder: Path) -> None:
    (folder / "tfdyno-project:1:a.json").write_text(json.dumps(past_runs.document("bench")))
    (folder / "run:2").mkdir()
    shutil.copy(folder / "answers" / "bench-fast.json", folder / "run:2" / "bench.json")
    reader = Reader(folder=folder)
    found = by_place(reader)
    before, after = found["tfdyno-project:1:a.json"], found["run:2/bench.json"]
    assert not before.is_step
    speed = next(
        one for one in reader.difference(before.id, after.id) if one.before.name == "throughput"
    )
    assert speed.after.value == past_runs.document("bench-fast")["throughput_per_s"]


def test_a_file_that_was_removed_is_not_kept_in_memory(folder: Path) -> None:
    reader = Reader(folder=folder)
    reader.shelf()
    assert len(reader._known) == len(KINDS)
    (folder / "answers" / "bench.json").unlink()
    reader.shelf()
    assert len(reader._known) == len(KINDS) - 1


def test_names_of_odd_characters_have_an_id(folder: Path) -> None:
    source = json.dumps(past_runs.document("bench"))
    (folder / "a <b>&'\" ü.json").write_text(source)
    found = by_place(Reader(folder=folder))
    assert len({one.id for one in found.values()}) == len(KINDS) + 1
