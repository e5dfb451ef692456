"""The doctor's answers: of this machine, of a told one, of a log, of code."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.rules.environment.machines import HEALTHY, card

from tfdyno.core.base.errors import UsageError
from tfdyno.core.doctor.machine_facts import ChildFacts, DriverFacts, ProbeResult
from tfdyno.jobs.doctor import doctor

DATA = Path(__file__).parents[2] / "data" / "doctor"
INIT_FAILED = "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
ONEDNN = (
    "I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see slightly "
    "different numerical results due to floating-point round-off errors from different computation "
    "orders. To turn them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`."
)
WRAPPER = """#!/bin/sh
case "$*" in
*try_tensorflow*) {then} ;;
esac
exec {python} "$@"
"""


def ids(found: doctor.Examined) -> list[str]:
    return [one.cause for one in found.diagnosis.findings]


def test_a_quick_look_runs_every_probe_and_says_what_it_left_out() -> None:
    loaded = "tensorflow" in sys.modules  # by another test
    found = doctor.examine(quick=True)
    names = [one.name for one in found.facts.probes]
    assert names[:2] == ["system", "python"]
    assert names[-1] == "TensorFlow"
    assert found.facts.child is None
    assert "TensorFlow: because of --quick" in found.diagnosis.notes
    assert ("tensorflow" in sys.modules) == loaded


def test_probes_with_one_reason_share_a_line() -> None:
    probes = tuple(
        ProbeResult(name=name, state="not_run", reason="there is no NVIDIA device")
        for name in ("cuda", "nvml")
    )
    found = doctor.replay(replace(HEALTHY, probes=probes))
    assert found.diagnosis.notes == ("cuda, nvml: there is no NVIDIA device",)


def test_a_healthy_machine_has_no_finding_and_says_what_is_fine() -> None:
    found = doctor.replay(replace(HEALTHY, gpus=(card(),)))
    assert (ids(found), found.exit_code) == ([], 0)
    assert any("A100" in word for word in found.diagnosis.fine)


def test_a_log_is_read_in_the_light_of_the_machine_it_comes_from() -> None:
    alone = doctor.explain([INIT_FAILED.encode()])
    told = replace(HEALTHY, container="docker", gpus=None, device_nodes=(), driver=DriverFacts())
    inside = doctor.explain([INIT_FAILED.encode()], facts=told)
    assert ids(inside)[0] == "ctr.no_gpu_flag"
    assert ids(alone)[0] not in {"ctr.no_gpu_flag", ""}


def test_harmless_lines_of_a_log_clear_what_it_does_not_show() -> None:
    found = doctor.explain([ONEDNN.encode()], facts=replace(HEALTHY, gpus=()))
    assert (ids(found), found.exit_code) == ([], 0)
    assert [one.cause for one in found.diagnosis.ignored] == ["harmless.onednn"]


def test_code_is_checked_and_what_was_not_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import tensorflow as tf\nsess = tf.Session()\n")
    (tmp_path / "data.py").write_bytes(b"\0\1\2")
    found = doctor.check_source(tmp_path, facts=replace(HEALTHY, tensorflow="2.20.0"))
    assert found.exit_code == 1
    assert all(cause.startswith("code.") for cause in ids(found))
    assert "data.py was not read: it is binary." in found.diagnosis.notes


def test_code_of_which_nothing_can_be_read_is_not_called_in_order(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_bytes(b"\0\1\2")
    for path in (tmp_path, tmp_path / "data.py"):
        with pytest.raises(UsageError, match=r"data\.py was not read: it is binary"):
            doctor.check_source(path, facts=HEALTHY)


def test_an_interpreter_may_be_named_as_the_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python9").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = doctor.examine(quick=True, python="python9")
    assert found.facts.python.version == ".".join(map(str, sys.version_info[:3]))
    with pytest.raises(UsageError, match="--python python8 cannot be run"):
        doctor.examine(quick=True, python="python8")


def test_the_active_environment_is_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert doctor.examine(quick=True).facts.python.prefix == str(tmp_path)


def test_saved_facts_are_read_again_without_the_names_of_this_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "zaphod_b")
    path = tmp_path / "facts.json"
    facts = replace(HEALTHY, environment={"LD_LIBRARY_PATH": "/home/zaphod_b/lib"})
    doctor.save_facts(path, facts)
    again = doctor.told_facts(path)
    assert (again.tensorflow, again.driver, again.python.version) == (
        facts.tensorflow, facts.driver, facts.python.version,
    )  # fmt: skip
    assert doctor.replay(again).diagnosis.findings == doctor.replay(facts).diagnosis.findings
    assert "zaphod" not in path.read_text()


def test_a_few_told_words_become_a_machine(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    path.write_text(json.dumps({"tf": "2.20", "gpu": "RTX 5090", "os": "Ubuntu 22.04"}))
    found = doctor.replay(doctor.told_facts(path))
    assert ids(found)[0] == "gpu.arch_too_new"
    assert found.exit_code == 1


def wrapped(tmp_path: Path, then: str) -> str:
    """An interpreter that does something else when TensorFlow is to be tried."""
    path = tmp_path / "python"
    path.write_text(WRAPPER.format(then=then, python=sys.executable))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("kill -ILL $$", "SIGILL"),
        ("kill -SEGV $$", "SIGSEGV"),
        (f"echo '{INIT_FAILED}'; exit 1", "exit code 1"),
        ("sleep 60", "no result within 2 s"),
    ],
)
def test_a_tensorflow_that_dies_is_an_answer(
    then: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "CHILD_LIMIT_S", 2.0)
    found = doctor.examine(python=wrapped(tmp_path, then))
    if not found.facts.tensorflow:
        pytest.skip("TensorFlow is not installed, so it is not tried")
    child = found.facts.child
    assert child is not None
    assert child.failed == "crash"
    assert child.exit_code != 0
    assert said in child.error
    assert found.exit_code == 1
    assert any(said in note for note in found.diagnosis.notes)


@pytest.mark.tf
def test_a_look_with_tensorflow_keeps_what_the_machine_shows() -> None:
    """Harmless lines of its start must not hide that there is no GPU."""
    found = doctor.examine()
    child = found.facts.child
    assert isinstance(child, ChildFacts)
    assert (child.failed, child.exit_code) == ("", 0)
    quick = doctor.examine(quick=True)
    assert ids(found) == ids(quick)
    assert any(word.startswith("import ") for word in found.diagnosis.fine)


def test_the_facts_of_a_card_decide_the_fix_for_a_ptx_that_is_too_old() -> None:
    """A log and facts as people post them: RTX 5060 Ti with the wheel of TensorFlow 2.21."""
    log, facts = DATA / "ptx_too_old.log", doctor.told_facts(DATA / "ptx_too_old.json")
    found = doctor.explain([log.read_bytes()], facts=facts)
    (said,) = found.diagnosis.findings
    assert (said.cause, said.verdict) == ("gpu.arch_too_new", "proven")
    assert said.fix[0].command == "model.compile(..., jit_compile=False)"
    assert "smaller of the CUDA that it was built with and of ptxas" in said.why
    assert "no code" not in said.summary


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.99.0", "TensorFlow 2.99.0 came later, and nothing is known of its wheels"),
        ("2.22.0", "was read from the release candidate 2.22.0rc0 on 2026-11-26"),
    ],
)
def test_tables_older_than_the_tensorflow_are_told(version: str, said: str) -> None:
    facts = replace(HEALTHY, tensorflow=version)
    assert said in doctor.replay(facts).diagnosis.aged
    assert said in doctor.explain([b"Killed"], facts=facts).diagnosis.aged
    assert version in doctor.replay(facts, language="zh").diagnosis.aged
