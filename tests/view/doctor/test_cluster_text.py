"""The report about a cluster: the answer first, then findings, then a line for each node."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.cluster.clusters import cluster, node

from tfdyno.core.cluster.cluster_facts import Bandwidth, ClockReading, ClusterReport
from tfdyno.rules.cluster import cluster_findings, in_order
from tfdyno.view.doctor.cluster_text import answer, cluster_document, cluster_text

MEASURED = Bandwidth(
    between="nodes", rank=0, implementation="RING", replicas=2, size_bytes=64 << 20,
    bus_bytes_per_s=5e7, low_bytes_per_s=4e7, high_bytes_per_s=6e7, small_s=0.004,
    expected_bytes_per_s=7e7, expected_from="one connection carries 500 MB/s",
)  # fmt: skip


def report(**given: object) -> ClusterReport:
    facts = replace(cluster(), **given)  # type: ignore[arg-type]
    found = cluster_findings(facts)
    return ClusterReport(facts=facts, findings=found, bandwidths=(MEASURED,),
                         fine=in_order(facts, found))  # fmt: skip


def test_the_answer_comes_first_and_every_node_has_a_line() -> None:
    lines = cluster_text(report(notes=("x: not looked at",)), width=100).splitlines()
    assert lines[0] == "✓ 2 nodes can train together."
    assert lines[2].split() == "node host tensorflow cards clock line folder /dev/shm".split()
    assert lines[3].split()[:4] == ["0", "n0", "2.21.0", "CPU"]
    assert "+1.0 ms" in lines[4]
    told = "\n".join(lines)
    assert "RING, 2 nodes  64 MiB  50 MB/s  40 MB/s to 60 MB/s  70 MB/s   4 ms" in told
    assert "expected  one connection carries 500 MB/s" in told
    assert "not run   x: not looked at" in told


def test_the_worst_finding_is_in_the_answer_and_the_rest_below() -> None:
    other = node(1, versions={**node(1).versions, "keras": "3.0", "numpy": "1"})
    found = report(nodes=(node(0), other))
    assert answer(found) == (
        "2 nodes cannot train together: the nodes do not run the same keras."
    )  # fmt: skip
    text = cluster_text(found, width=100)
    assert text.startswith("✗ 2 nodes cannot train together")
    assert text.index("✗ The nodes do not run the same keras.") < text.index("! The nodes do not")
    assert "worker 1 (n1): keras 3.0" in text
    assert "fix       Install the same keras on all nodes" in text


def test_warnings_are_counted_in_the_answer() -> None:
    late = replace(cluster().views[0], seen_s=9.0)
    assert answer(report(views=(late,))) == "2 nodes can train together, with 1 warning."


def test_no_line_is_wider_than_the_screen() -> None:
    other = node(1, versions={**node(1).versions, "keras": "3.0"})
    text = cluster_text(report(nodes=(node(0), other)), width=80)
    assert max(map(len, text.splitlines())) <= 80


def test_a_clock_a_little_behind_is_not_minus_nothing() -> None:
    facts = cluster(clocks=(ClockReading(rank=1, offset_s=-1e-5, uncertainty_s=1e-4),))
    shown = cluster_text(ClusterReport(facts=facts, findings=(), bandwidths=(), fine=()))
    assert "+0.0 ms" in shown


def test_the_keys_are_the_documented_ones() -> None:
    facts = cluster(node(0), node(1, versions={"keras": "1"}))
    found = cluster_document(ClusterReport(facts=facts, findings=cluster_findings(facts)))
    assert set(found) == {"answer", "can_train", "findings", "bandwidths", "fine", "facts"}
    assert found["can_train"] is False
    assert found["findings"][0]["cause"] == "cluster.versions"
    assert found["facts"]["nodes"][1]["host"] == "n1"
