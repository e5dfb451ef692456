"""A finding about a lost loss has the doctor's own cause, the proof and a fix."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tfdyno.runtime.nan import words

RULES = Path(__file__).parents[3] / "src" / "tfdyno" / "rules" / "data" / "num.toml"


def test_the_causes_are_those_of_the_doctor() -> None:
    known = tomllib.loads(RULES.read_text())
    for half, name in ((False, "nan"), (True, "mixed_nan")):
        found = words.finding("What.", "Why.", [("seen", "here")], [words.EPSILON], half=half)
        assert found.cause == f"num.{name}"
        assert name in known
        assert found.link == known[name].get("link", "")


def test_evidence_without_text_is_left_out() -> None:
    found = words.finding("What.", "Why.", [("", "a"), ("seen", "b")], [words.find("tensorflow")])
    assert [(each.text, each.source) for each in found.evidence] == [("seen", "b")]
    assert found.fix[0].command == "tf.debugging.enable_check_numerics()"


def test_names_are_put_into_the_fix() -> None:
    assert 'Keep head in float32: give it dtype="float32"' in words.float32_layer("head").text
    assert words.cleaning("x, sample 3").text.endswith("leave such samples out: x, sample 3.")


def test_the_operation_is_found_by_the_backend_itself() -> None:
    assert "tf.debugging" in words.find("tensorflow").command
    assert "jax_debug_nans" in words.find("jax").command
