"""What the services' own packages say to a job, in an environment that has them.

``TFDYNO_MANAGED_PYTHON`` names its interpreter: ``pip install botocore google-cloud-aiplatform
azure-ai-ml`` takes half a gigabyte, none of which tfdyno needs.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from typing import Any

PYTHON = os.environ.get("TFDYNO_MANAGED_PYTHON", "")
READERS = {
    "vertex": """
from google.cloud.aiplatform_v1.types import CustomJobSpec
from google.protobuf import json_format
json_format.ParseDict(given, CustomJobSpec.pb(CustomJobSpec()))
""",
    "azureml": """
import pathlib, tempfile
from azure.ai.ml import load_job
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "job.yaml")
    path.write_text(json.dumps({**given, "code": folder}))
    load_job(path)
""",
    "sagemaker": """
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
shape = model.operation_model("CreateTrainingJob").input_shape
found = ParamValidator().validate(given, shape)
assert not found.has_errors(), found.generate_report()
""",
    "sagemaker machines": """
from botocore.loaders import Loader
shapes = Loader().load_service_model("sagemaker", "service-2")["shapes"]
assert given["name"] in shapes["TrainingInstanceType"]["enum"], given
""",
}
MODULES = {"vertex": "google.cloud.aiplatform_v1", "azureml": "azure.ai.ml",
           "sagemaker": "botocore"}  # fmt: skip


@functools.cache
def _has(module: str) -> bool:
    words = [PYTHON, "-c", f"import importlib.util as u; assert u.find_spec({module!r})"]
    return bool(PYTHON) and subprocess.run(words, capture_output=True, check=False).returncode == 0


VERTEX, AZUREML, SAGEMAKER = (_has(MODULES[one]) for one in ("vertex", "azureml", "sagemaker"))


def read_by(service: str, *jobs: dict[str, Any]) -> str:
    """What a service's package has against any of its jobs; empty: nothing."""
    code = f"import json, sys\nfor given in json.load(sys.stdin):\n{_indented(READERS[service])}"
    done = subprocess.run(
        [PYTHON, "-c", code], input=json.dumps(jobs), capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip().splitlines())
