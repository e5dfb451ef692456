"""core/deploy/language_model: a plan goes into JSON whole and comes back."""

from __future__ import annotations

import json

from tests.language_models import LLAMA_8B, PLAN

from tfdyno.core.base.codec import from_builtins, to_json
from tfdyno.core.deploy.language_model import TextServerPlan


def test_a_plan_survives_json() -> None:
    again = from_builtins(json.loads(to_json(PLAN)), TextServerPlan, where="here")
    assert again == PLAN
    assert again.model == LLAMA_8B
