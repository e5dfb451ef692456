"""Plans that every server's files are rendered from, and who checks the files for real."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tfdyno.core.deploy.serving_plan import ServingPlan

SCHEMAS = os.environ.get("TFDYNO_SCHEMAS_PYTHON", "")
"""An interpreter with kubernetes-validate, check-jsonschema and grpcio-tools."""


def small(engine: str, **given: Any) -> ServingPlan:
    """One replica on CPUs."""
    basic: dict[str, Any] = {"engine": engine, "name": "cnn", "kind": "savedmodel"}
    return ServingPlan(**{**basic, **given})


def full(engine: str, **given: Any) -> ServingPlan:
    """All that a sizing says, on GPUs."""
    everything: dict[str, Any] = {
        "kind": "onnx",
        "name": "Fashion_cnn",
        "version": 7,
        "max_batch_size": 32,
        "max_delay_s": 0.0045,
        "max_queue": 256,
        "deadline_s": 0.25,
        "port": 9000,
        "replicas_min": 2,
        "replicas_max": 9,
        "target_requests_per_s": 812.5,
        "cpus": 4,
        "memory_bytes": 8 << 30,
        "gpus": 1,
        "storage": "pvc://models/prod",
        "namespace": "ml",
    }
    return small(engine, **{**everything, **given})


def checked_by_schemas(source: str, *words: str) -> None:
    """Run source in the environment of the official schemas; it fails where they refuse."""
    if not SCHEMAS:
        pytest.skip("TFDYNO_SCHEMAS_PYTHON names no environment with the official schemas")
    command = [SCHEMAS, "-c", source, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stderr


COMPOSE = """
import json, sys, yaml, jsonschema, check_jsonschema
from pathlib import Path
folder = Path(check_jsonschema.__file__).parent / "builtin_schemas" / "vendor"
schema = json.loads((folder / "compose-spec.json").read_text())
made = yaml.safe_load(sys.argv[1])
jsonschema.validate(made, schema)
(service,) = made["services"].values()
service["port"] = ["1:1"]
try:
    jsonschema.validate(made, schema)
except jsonschema.ValidationError:
    sys.exit(0)
sys.exit("a wrong key is not seen")
"""
"""The schema of compose-spec, as check-jsonschema ships it."""
