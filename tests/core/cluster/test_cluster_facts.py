"""What nodes tell goes over a line as JSON and comes back the same."""

from __future__ import annotations

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.cluster.cluster_facts import (
    AllReduce,
    Call,
    ClusterFacts,
    ClusterReport,
    NodeCard,
    NodeFacts,
    SizeTimes,
)
from tfdyno.core.doctor.finding import Evidence, Finding, FixStep, Severity


def found(severity: Severity) -> Finding:
    seen, fix = Evidence(text="x", source="worker 1"), FixStep(text="do")
    return Finding(cause="cluster.versions", verdict="proven", severity=severity, summary="s.",
                   why="w.", evidence=(seen,), fix=(fix,))  # fmt: skip


def test_a_report_is_the_same_after_json() -> None:
    node = NodeFacts(rank=1, host="b", address="b:1", versions={"keras": "3"},
                     cards=(NodeCard(index=0, ecc=True),))  # fmt: skip
    measured = AllReduce(between="nodes", sizes=(SizeTimes(size_bytes=4, times_s=(0.1, 0.2)),))
    facts = ClusterFacts(size=2, nodes=(node,), calls=(Call(caller=0, callee=1),),
                         all_reduces=(measured,))  # fmt: skip
    report = ClusterReport(facts=facts, findings=(found("note"),))
    assert from_json(to_json(report), ClusterReport) == report


def test_only_an_error_is_an_exit_code() -> None:
    facts = ClusterFacts(size=1, nodes=())
    assert ClusterReport(facts=facts, findings=(found("warning"),)).exit_code == 0
    assert ClusterReport(facts=facts, findings=(found("warning"), found("error"))).exit_code == 1
