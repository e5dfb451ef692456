"""TensorFlow as the child finds it."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_versions_and_devices_are_told() -> None:
    found = facts()["software"]
    assert found["keras"].startswith("3.")
    assert (found["device"], found["devices"]) == ("cpu", ["CPU"])
    assert found["tensorflow"].count(".") == found["python"].count(".") == 2


def test_a_missing_package_is_told_with_what_to_do() -> None:
    text = facts()["no_keras"]
    assert text.startswith("tfdyno train needs TensorFlow: ")
    assert "--python" in text
