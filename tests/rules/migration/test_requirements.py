from __future__ import annotations

import pytest
from tests.rules.migration.code import found

GONE = [
    ("requirements.txt", "tensorflow-gpu\n"),
    ("requirements/gpu.txt", "TensorFlow_GPU>=2.3,<3  # cards\n"),
    ("requirements-dev.in", 'tensorflow-gpu; sys_platform == "linux"\n'),
    ("constraints.txt", "tensorflow-gpu==2.12.0\n"),
    ("pyproject.toml", '[project]\ndependencies = ["numpy", "tensorflow-gpu >= 2.4"]\n'),
    ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["tensorflow-gpu"]\n'),
    ("pyproject.toml", '[dependency-groups]\ngpu = ["tensorflow_gpu"]\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow-gpu = "*"\n'),
    ("Pipfile", '[packages]\ntensorflow-gpu = "*"\n'),
    ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    tensorflow-gpu>=2\n"),
    ("setup.py", 'from setuptools import setup\nsetup(install_requires=["tensorflow-gpu"])\n'),
    ("environment.yml", "dependencies:\n  - python\n  - pip:\n    - tensorflow-gpu\n"),
    (
        "Dockerfile",
        "FROM python:3.11\nRUN apt-get update && \\\n    pip3 install -q tensorflow-gpu\n",
    ),
    ("gpu.Dockerfile", "RUN python -m pip install --no-cache-dir 'tensorflow-gpu>=2.4' scipy\n"),
    ("setup.sh", "uv pip install tensorflow-gpu && echo done\n"),
    ("run.sh", "uv add tensorflow-gpu\n"),
    (".github/workflows/ci.yml", "      - run: pip install tensorflow-gpu\n"),
]
FINE = [
    ("requirements.txt", "tensorflow[and-cuda]>=2.16\nnot-tensorflow-gpu\n# tensorflow-gpu\n"),
    ("pyproject.toml", '[project]\nname = "x"\ndescription = "no tensorflow-gpu here"\n'),
    ("environment.yml", "dependencies:\n  - tensorflow-gpu\n  - pip:\n    - numpy\n"),
    ("Dockerfile", "# pip install tensorflow-gpu\nRUN pip install tensorflow\n"),
    ("run.sh", "pip uninstall tensorflow-gpu\npip install x && echo tensorflow-gpu\n"),
    ("setup.py", 'from setuptools import setup\nsetup(description="tensorflow gpu tools")\n'),
    ("notes.txt", "tensorflow-gpu\n"),
]
OLD = ["==2.4.1", "<2.12", "~=2.3", ">=2.0,<2.11", "<=2.10"]
NOT_OLD = ["", ">=1.15", "==2.12.0", "<3", "!=2.5"]


@pytest.mark.parametrize(("name", "text"), GONE)
def test_the_removed_package_is_found_wherever_it_is_asked_for(name: str, text: str) -> None:
    assert "tensorflow_gpu" in found(text, name=name)


@pytest.mark.parametrize(("name", "text"), FINE)
def test_other_mentions_are_left_alone(name: str, text: str) -> None:
    assert found(text, name=name) == {}


@pytest.mark.parametrize("bounds", OLD)
def test_a_pin_below_the_empty_release_is_only_a_note(bounds: str) -> None:
    assert found(f"tensorflow-gpu{bounds}\n", name="requirements.txt").keys() == {
        "tensorflow_gpu_old"
    }


@pytest.mark.parametrize("bounds", NOT_OLD)
def test_no_bound_or_one_that_lets_the_empty_release_in_is_an_error(bounds: str) -> None:
    assert found(f"tensorflow-gpu{bounds}\n", name="requirements.txt").keys() == {"tensorflow_gpu"}


def test_poetry_caret_lets_the_empty_release_in() -> None:
    text = '[tool.poetry.dependencies]\npython = "^3.9"\ntensorflow-gpu = "{}"\n'
    assert "tensorflow_gpu" in found(text.format("^2.4"), name="pyproject.toml")
    assert "tensorflow_gpu_old" in found(text.format("2.4.1"), name="pyproject.toml")


def test_the_line_is_that_of_the_requirement() -> None:
    match = found(
        '[project]\nname = "x"\ndependencies = [\n  "tensorflow-gpu",\n]\n', name="pyproject.toml"
    )
    assert match["tensorflow_gpu"].evidence[0].source == "pyproject.toml:4"
