"""What ``doctor --cluster --json`` prints, under its documented keys."""

from __future__ import annotations

from tests.rules.cluster.clusters import cluster, node

from tfdyno.core.cluster.cluster_facts import ClusterReport
from tfdyno.rules.cluster import cluster_findings
from tfdyno.view.doctor.cluster_document import cluster_document


def test_the_keys_are_the_documented_ones() -> None:
    facts = cluster(node(0), node(1, versions={"keras": "1"}))
    found = cluster_document(ClusterReport(facts=facts, findings=cluster_findings(facts)))
    assert set(found) == {"answer", "can_train", "findings", "bandwidths", "fine", "facts"}
    assert found["can_train"] is False
    assert found["findings"][0]["cause"] == "cluster.versions"
    assert found["facts"]["nodes"][1]["host"] == "n1"
