"""core/fix_proof: a proof survives JSON with all that it rests on."""

from __future__ import annotations

from tests.view.diagnoses import PROOF, SLOWER, fixed

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.measure.fix_proof import FixProof, ProvenDiagnosis


def test_a_proof_comes_back_from_json_as_it_was() -> None:
    for one in (PROOF, SLOWER):
        assert from_json(to_json(one), FixProof) == one


def test_a_proven_diagnosis_comes_back_from_json_as_it_was() -> None:
    proven = fixed().proven
    assert from_json(to_json(proven), ProvenDiagnosis) == proven
