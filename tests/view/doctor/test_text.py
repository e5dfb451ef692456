"""A diagnosis in a terminal: the answer first, its proof, what to do, then the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.environment.machines import HEALTHY

from tfdyno.core.doctor.finding import Diagnosis, Evidence, Finding, FixStep
from tfdyno.core.doctor.machine_facts import LibraryFacts, MachineFacts
from tfdyno.view.base.text import shown_width
from tfdyno.view.doctor.text import doctor_text, fix_plan, shared_report

DRIVER = Finding(
    cause="drv.too_old", verdict="proven", severity="error",
    summary="The NVIDIA driver 450.80 is too old: TensorFlow 2.20 needs 525.60.13 or later.",
    why="The CUDA of the wheel calls functions that this driver does not have.",
    evidence=(Evidence(text="450.80", source="/proc/driver/nvidia/version"),),
    fix=(FixStep(text="Install a newer driver.", command="sudo apt install nvidia-driver-570"),
         FixStep(command="sudo reboot")),
    symptoms=("sym.no_gpu",), link="https://docs.nvidia.com/deploy/cuda-compatibility/",
)  # fmt: skip
NUMA = Finding(
    cause="harmless.numa_node", verdict="proven", severity="note", summary="NUMA lines are noise.",
    why="Virtual machines have no NUMA node.", harmless=True, count=3,
    evidence=(Evidence(text="read -1", source="line 2"),), fix=(FixStep(text="Nothing."),),
)  # fmt: skip
BOTH = Diagnosis(findings=(DRIVER,), ignored=(NUMA,), fine=("Python 3.11.9", "Keras 3.15.1"),
                 notes=("nvml: there is no NVIDIA device",))  # fmt: skip


def test_the_answer_comes_first_then_proof_reason_and_fix() -> None:
    assert doctor_text(BOTH, exit_code=1, from_log=False) == (
        "✗ The NVIDIA driver 450.80 is too old: TensorFlow 2.20 needs 525.60.13 or later.\n"
        "  proven    drv.too_old\n"
        "  because   /proc/driver/nvidia/version: 450.80\n"
        "  why       The CUDA of the wheel calls functions that this driver does not\n"
        "            have.\n"
        "  fix       Install a newer driver.\n"
        "              sudo apt install nvidia-driver-570\n"
        "              sudo reboot\n"
        "  explains  sym.no_gpu\n"
        "  more      https://docs.nvidia.com/deploy/cuda-compatibility/\n"
        "\n"
        "  fine      Python 3.11.9 · Keras 3.15.1\n"
        "  ignored   3 harmless: 3 numa_node  (--show-ignored lists them)\n"
        "  not run   nvml: there is no NVIDIA device\n"
        "\n"
        "1 error, 0 warnings.  exit 1"
    )


def test_chinese_has_its_own_words_and_full_stops() -> None:
    lines = doctor_text(BOTH, exit_code=1, from_log=False, language="zh").splitlines()
    assert lines[1] == "  已证实    drv.too_old"
    assert lines[-1] == "1 个错误，0 个警告。  退出码 1"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_text_is_wider_than_the_screen(width: int, language: str) -> None:
    shown = doctor_text(
        BOTH, exit_code=1, from_log=False, width=width, show_ignored=True,
        language="zh" if language == "zh" else "en",
    )  # fmt: skip
    text = [line for line in shown.splitlines() if "http" not in line and "sudo" not in line]
    assert max(map(shown_width, text)) <= width


def test_a_command_is_never_broken() -> None:
    shown = doctor_text(BOTH, exit_code=1, from_log=False, width=40)
    assert "sudo apt install nvidia-driver-570" in shown


def test_only_the_first_finding_says_why() -> None:
    two = Diagnosis(findings=(DRIVER, replace(DRIVER, cause="drv.other")))
    assert doctor_text(two, exit_code=1, from_log=False).count("  why ") == 1


def test_an_error_passed_on_is_quoted_once_and_without_its_prefix() -> None:
    told = "OOM when allocating tensor with shape[4,2048,128,128] and type float on device GPU:0"
    place = "2025-07-31 20:22:43.043072: W tensorflow/core/framework/op_kernel.cc:1753] "
    seen = (
        Evidence(text=f"{place}OP_REQUIRES failed: {told}", source="line 48"),
        Evidence(text=f"  (0) Resource exhausted: {told}", source="line 50"),
    )
    finding = Finding(cause="mem.oom_model", verdict="proven", severity="error", summary="Full.",
                      why="", evidence=seen, fix=DRIVER.fix, count=5)  # fmt: skip
    shown = doctor_text(Diagnosis(findings=(finding,)), exit_code=1, from_log=True, width=120)
    assert f"because line 48: OP_REQUIRES failed: {told}" in " ".join(shown.split())
    assert "line 50" not in shown
    assert "op_kernel.cc" not in shown
    assert "mem.oom_model  (5 times)" in shown


def test_proof_beyond_three_lines_is_counted() -> None:
    seen = tuple(Evidence(text=f"sign {n}", source=f"line {n}") for n in range(1, 6))
    finding = Finding(cause="a.b", verdict="likely", severity="warning", summary="Five.", why="",
                      evidence=seen, fix=DRIVER.fix)  # fmt: skip
    shown = doctor_text(Diagnosis(findings=(finding,)), exit_code=0, from_log=True)
    assert "line 3: sign 3\n            +2\n" in shown
    assert "0 errors, 1 warning.  exit 0" in shown


@pytest.mark.parametrize(
    ("diagnosis", "from_log", "said"),
    [
        (Diagnosis(findings=()), False, "✓ Nothing is wrong here."),
        (Diagnosis(findings=()), True, "· No cause that tfdyno knows is in this log."),
        (Diagnosis(findings=(), ignored=(NUMA,)), True, "✓ Nothing is wrong: every message that"),
    ],
)
def test_without_a_finding_the_answer_says_what_was_asked(
    diagnosis: Diagnosis, from_log: bool, said: str
) -> None:
    assert doctor_text(diagnosis, exit_code=0, from_log=from_log).startswith(said)


def test_an_unknown_error_is_the_answer_with_its_lines_and_where_to_look() -> None:
    seen = (Evidence(text="E0000 00:00:17 1 new.cc:7] the flux is off", source="line 3"),
            Evidence(text="Aborted (core dumped)", source="line 9"))  # fmt: skip
    diagnosis = Diagnosis(findings=(), ignored=(NUMA,), unexplained=seen)
    shown = doctor_text(diagnosis, exit_code=4, from_log=True)
    assert shown.startswith("? An error that tfdyno does not know: the flux is off\n")
    assert "because   line 3: the flux is off\n            line 9: Aborted" in shown
    assert "https://github.com/tensorflow/tensorflow/issues" in shown
    assert shown.endswith("0 errors, 0 warnings.  exit 4")
    assert "✓" not in shown


def test_a_failure_without_a_known_cause_is_the_answer() -> None:
    broken = Diagnosis(findings=(), notes=("TensorFlow does not run here: SIGSEGV.", "x: y"))
    shown = doctor_text(broken, exit_code=1, from_log=False)
    assert shown.startswith("✗ TensorFlow does not run here: SIGSEGV.\n")
    assert shown.endswith("  not run   x: y\n\n1 error, 0 warnings.  exit 1")


def test_ignored_messages_get_their_reason_when_asked() -> None:
    shown = doctor_text(BOTH, exit_code=1, from_log=False, show_ignored=True)
    assert "3 x harmless.numa_node: Virtual machines have no NUMA node." in shown


def test_colour_repeats_what_the_marks_say() -> None:
    plain = doctor_text(BOTH, exit_code=1, from_log=False)
    painted = doctor_text(BOTH, exit_code=1, from_log=False, colour=True)
    assert "\x1b[31m✗\x1b[0m" in painted
    for code in ("31", "1", "36", "0"):
        painted = painted.replace(f"\x1b[{code}m", "")
    assert painted == plain


def test_a_fix_plan_is_a_script_of_the_commands_in_order() -> None:
    lines = fix_plan(Diagnosis(findings=(DRIVER,))).splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == [
        "sudo apt install nvidia-driver-570", "sudo reboot",
    ]  # fmt: skip
    assert f"# 1. {DRIVER.summary}  [drv.too_old]" in lines
    assert fix_plan(Diagnosis(findings=())) == "# Nothing to do."


def test_a_report_to_share_has_the_findings_and_the_machine() -> None:
    report = shared_report(BOTH, HEALTHY)
    assert report.startswith("### tfdyno doctor\n\n- **drv.too_old** (proven): The NVIDIA driver")
    assert "  - /proc/driver/nvidia/version: `450.80`" in report
    assert "| packages | tensorflow 2.20.0, numpy 2.1.3 |" in report
    assert "- no finding" in shared_report(Diagnosis(findings=()), MachineFacts())


def test_libraries_of_a_report_are_a_version_or_a_word() -> None:
    absent = "libnccl.so.2: cannot open shared object file: No such file or directory"
    facts = MachineFacts(
        libraries=(
            LibraryFacts(soname="libcudnn.so.9", path="/x/libcudnn.so.9", version="9.5.1"),
            LibraryFacts(soname="libcudart.so.12", path="/x/libcudart.so.12"),
            LibraryFacts(soname="libnccl.so.2", error=absent),
            LibraryFacts(soname="libcublas.so.12", error="file too short"),
        )
    )
    assert (
        "| libraries | libcudnn.so.9 9.5.1, libcudart.so.12 found, libnccl.so.2 missing, "
        "libcublas.so.12 (file too short) |"
    ) in shared_report(Diagnosis(findings=()), facts)


@pytest.mark.parametrize("from_log", [False, True])
def test_aged_tables_are_a_note_of_their_own(from_log: bool) -> None:
    text = doctor_text(replace(BOTH, aged="The tables are old."), exit_code=1, from_log=from_log)
    lines = text.splitlines()
    label = next(line.split()[0] for line in lines if "The tables are old." in line)
    assert label == ("The" if from_log else "note")  # behind the other notes of a log
    assert ("  not run   nvml: there is no NVIDIA device" in lines) is not from_log
