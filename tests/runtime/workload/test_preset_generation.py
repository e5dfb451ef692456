"""The steps of KerasHub's generate as models: what goes into each, and who has none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import FineTune
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.runtime.workload.preset_generation import generation_step, prompt_places

pytestmark = pytest.mark.tf


@pytest.mark.parametrize(("t5", "places"), [(None, 77 + 77), ({"class_name": "T5"}, 77 + 256)])
def test_a_prompt_has_the_places_of_clip_and_of_t5_or_as_many_empty(
    t5: dict[str, str] | None, places: int
) -> None:
    assert prompt_places({"clip_l": {}, "clip_g": {}, "t5": t5}) == places


@pytest.mark.parametrize(
    ("step", "told"),
    [("token", "how keras_hub:gpt2_base_en generates text is not known: it has no cache"),
     ("denoise", "how keras_hub:gpt2_base_en makes images is not known: it has not the steps")],
)  # fmt: skip
def test_a_model_that_generates_otherwise_is_one_sentence(step: str, told: str) -> None:
    given = parse_reference("keras_hub:gpt2_base_en", mode="infer", fine_tune=FineTune())
    with pytest.raises(UsageError, match=f"^{told}"):
        generation_step(SimpleNamespace(), given, step)
