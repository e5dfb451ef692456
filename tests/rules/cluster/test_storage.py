"""Clocks that differ, and folders that are not shared, late, slow or full."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.cluster.clusters import causes, cluster, node

from tfdyno.core.cluster.cluster_facts import ClockReading, FolderFacts, FolderSpeed, SharedView
from tfdyno.rules.cluster import cluster_findings


@pytest.mark.parametrize(
    ("offset_s", "uncertainty_s", "severity"),
    [(0.5, 0.001, ""), (-2.0, 0.001, "warning"), (3600.0, 0.1, "error"), (3.0, 2.5, "")],
)
def test_a_clock_is_told_where_it_must_be_wrong(
    offset_s: float, uncertainty_s: float, severity: str
) -> None:
    clock = ClockReading(rank=1, offset_s=offset_s, uncertainty_s=uncertainty_s)
    found = cluster_findings(cluster(clocks=(clock,)))
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_the_words_say_which_clock_is_ahead() -> None:
    (found,) = cluster_findings(cluster(clocks=(
        ClockReading(rank=1, offset_s=-3600.0, uncertainty_s=0.1),
    )))  # fmt: skip
    assert found.summary == "The clock of worker 1 (n1) is 3,600.0 s behind worker 0's."


def test_a_folder_that_is_not_shared_is_an_error_with_its_file_system() -> None:
    own = node(1, folder=FolderFacts(path="/team/run", filesystem="overlay", free_bytes=1 << 40))
    (found,) = cluster_findings(cluster(node(0), own, views=(SharedView(writer=0, reader=1),)))
    assert (found.cause, found.severity) == ("cluster.not_shared", "error")
    assert "worker 1 (n1)" in found.summary
    assert "(overlay)" in found.evidence[0].text


def test_a_folder_that_cannot_be_written_is_told_with_the_reason() -> None:
    view = SharedView(writer=0, reader=1, error="write failed: Read-only file system.")
    (found,) = cluster_findings(cluster(views=(view,)))
    assert found.cause == "cluster.not_writable"
    assert "Read-only" in found.evidence[0].text


@pytest.mark.parametrize("what", ["seen_s", "replaced_s", "appended_s"])
def test_late_files_are_a_warning_with_the_mount_options_of_nfs(what: str) -> None:
    for taken_s in (12.0, None) if what != "seen_s" else (12.0,):
        view = replace(cluster().views[0], **{what: taken_s})  # type: ignore[arg-type]
        (found,) = cluster_findings(cluster(views=(view,)))
        assert (found.cause, found.severity) == ("cluster.seen_late", "warning")
        assert "lookupcache=positive" in found.fix[0].text


def test_a_slow_folder_and_a_full_one_are_warnings() -> None:
    slow = FolderSpeed(rank=1, size_bytes=1, write_bytes_per_s=5e6, read_bytes_per_s=1e9)
    assert causes(cluster(speeds=(slow,)), "warning") == ["folder_slow"]
    full = node(1, folder=FolderFacts(path="/team/run", filesystem="nfs4", free_bytes=1 << 20))
    assert causes(cluster(node(0), full), "warning") == ["folder_full"]
