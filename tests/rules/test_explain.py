"""From a log to an answer: one match per cause, conditions held, and a word when nothing fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rules.cases import CASES
from tests.rules.made import likely, made, rule

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.language import LANGUAGES
from tfdyno.core.doctor.finding import Diagnosis, Evidence
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.log.matches import EVIDENCE_LINES, log_matches
from tfdyno.rules.match import Match

if TYPE_CHECKING:
    from tfdyno.rules.causes import Cause

RULES = all_causes()


RETRACED = (
    "WARNING:tensorflow:{n} out of the last {n} calls to <function {name} at 0x7f842c4eb2e0> "
    "triggered tf.function retracing. Tracing is expensive and the excessive number of tracings "
    "could be due to (1) creating @tf.function repeatedly in a loop, (2) passing tensors with "
    "different shapes, (3) passing Python objects instead of tensors.\n"
)
RAN_OUT = (
    "tensorflow:Your input ran out of data; interrupting training. Make sure that your dataset or "
    "generator can generate at least `steps_per_epoch * epochs` batches (in this case, 2000 "
    "batches). You may need to use the repeat() function when building your dataset.\n"
)
CRASHED = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f847ebf5b80 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "train.py", line 13 in <module>
"""


def answer(text: str, *causes: Cause, **rest: Any) -> Diagnosis:
    return diagnose(log=scan([text], causes), causes=causes, **rest)


def test_two_rules_of_a_cause_give_one_finding_with_the_surer_verdict() -> None:
    cause = made("a.b", likely("first sign"), likely("second sign", r"sign (?P<x>\d)", "proven"))
    (one,) = answer("first sign\nnoise\nsecond sign 7\n", cause).findings
    assert (one.verdict, one.count) == ("proven", 2)
    assert [e.source for e in one.evidence] == ["line 1", "line 3"]


def test_one_line_that_two_rules_find_counts_once() -> None:
    cause = made("a.b", likely("first sign"), likely("sign of"))
    assert answer("first sign of it\n" * 30, cause).findings[0].count == 30


def test_evidence_is_few_lines_that_differ() -> None:
    cause = made("a.b", likely("sign"))
    (one,) = answer("sign one\nsign one\nsign two\nsign three\nsign four\n", cause).findings
    assert len(one.evidence) == EVIDENCE_LINES == len({e.text for e in one.evidence})
    assert one.evidence[0] == Evidence(text="sign one", source="line 1")


@pytest.mark.parametrize(
    ("text", "found"),
    [("sign\n", False), ("sign\nneeded\n", True), ("sign\nneeded\nspoiler\n", False)],
)
def test_other_texts_of_the_log_decide(text: str, found: bool) -> None:
    cause = made("a.b", rule("sign", also=("needed", "or this"), unless=("spoiler",)))
    assert bool(answer(text, cause).findings) is found


def test_a_rule_may_ask_for_the_machine_and_for_what_it_read() -> None:
    cause = made("a.b", rule("sign", r"sign (?P<x>\d+)", when={"system": "linux", "x": ">=5"}))
    assert not answer("sign 7", cause).findings
    linux = MachineFacts(system="linux")
    assert answer("sign 7", cause, facts=linux).findings
    assert not answer("sign 3", cause, facts=linux).findings
    assert answer("sign 3\nsign 8", cause, facts=linux).findings[0].evidence[0].source == "line 2"


def test_harmless_lines_are_folded_away() -> None:
    causes = [made("harmless.a", likely("numa"), harmless=True), made("a.b", likely("sign"))]
    said = answer("numa\nnuma\nsign\n", *causes)
    assert [one.cause for one in said.findings] == ["a.b"]
    assert [(one.cause, one.count) for one in said.ignored] == [("harmless.a", 2)]


def test_without_a_known_cause_the_lines_like_errors_are_quoted() -> None:
    said = answer("fine\nthe {flux} failed\n", made("a.b", likely("sign")))
    assert (said.findings, said.unexplained) == ((), ())
    assert "line 2" in said.notes[0]
    assert "the {flux} failed" in said.notes[0]
    chinese = answer("fine\n", made("a.b", likely("sign")), language="zh")
    assert len(chinese.notes) == 1
    assert "日志" in chinese.notes[0]


UNKNOWN = [
    "mypkg.OddError: the flux is off",
    "2025-06-10 11:00:00.000000: E tensorflow/core/new.cc:7] the flux is off",
    "F external/local_xla/xla/new.cc:282] Check failed: flux == 0",
    "E0000 00:00:1756500000.000000   10000 new_executor.cc:1309] INTERNAL: the flux is off",
    "Aborted (core dumped)",
]


@pytest.mark.parametrize("line", UNKNOWN)
def test_an_error_that_no_rule_knows_is_no_all_clear(line: str) -> None:
    harmless = made("harmless.a", likely("numa"), harmless=True)
    said = answer(f"numa\n{line}\nlast\n", harmless)
    assert (said.findings, said.notes) == ((), ())
    assert said.unexplained == (Evidence(text=line, source="line 2"),)


def test_of_unknown_errors_the_first_comes_first() -> None:
    said = answer("\n".join(reversed(UNKNOWN)), made("a.b", likely("sign")))
    assert said.unexplained[0].text == UNKNOWN[-1]


def test_a_warning_does_not_explain_an_error_and_an_error_does() -> None:
    log = f"sign\n{UNKNOWN[0]}\n"
    warning = answer(log, made("a.b", likely("sign"), severity="warning"))
    assert len(warning.findings) == len(warning.unexplained) == 1
    assert answer(log, made("a.b", likely("sign"))).unexplained == ()


def test_an_error_line_that_is_known_to_be_harmless_is_not_unknown() -> None:
    cause = made("harmless.a", likely("already been registered"), harmless=True)
    line = "E external/local_xla/a.cc:1] cuFFT has already been registered\n"
    assert answer(line, cause).unexplained == ()
    assert answer(line, made("harmless.b", likely("numa"), harmless=True)).unexplained


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("NO_DEVICE: no CUDA-capable device is detected", {"drv.init_failed"}),
        ("NOT_PERMITTED: operation not permitted", {"drv.init_failed"}),
    ],
)
def test_a_topic_is_not_read_off_the_path_of_a_source_file(status: str, found: set[str]) -> None:
    line = (
        f"E external/local_xla/xla/cuda_driver.cc:282] failed call to cuInit: CUDA_ERROR_{status}"
    )
    first = answer(line, *RULES).findings[0]
    assert first.cause in found
    told = answer("XLA fails to compile my layer", *RULES).findings
    assert {one.cause for one in told} == {"xla.unsupported_op"}


def test_facts_alone_need_no_log_and_no_notes() -> None:
    match = Match(cause="a.b", verdict="likely", basis="facts",
                  evidence=(Evidence(text="x", source="y"),))  # fmt: skip
    said = diagnose(found=[match], causes=[made("a.b")])
    assert ([one.cause for one in said.findings], said.notes) == (["a.b"], ())


def test_a_match_without_a_cause_is_a_fault_of_the_tool() -> None:
    match = Match(cause="a.b", verdict="likely", basis="facts", evidence=())
    with pytest.raises(ToolError, match=r"a\.b"):
        diagnose(found=[match], causes=[])


def test_matches_stand_in_the_order_of_the_rules() -> None:
    causes = [made("b.b", likely("two")), made("a.a", likely("one"))]
    log = scan(["one\ntwo\n"], causes)
    assert [one.cause for one in log_matches(log, {})] == ["b.b", "a.a"]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(
    st.lists(st.sampled_from([case["log"] for case in CASES]), min_size=1, max_size=3),
    st.data(),
)
def test_no_mutation_of_a_real_log_makes_it_fail(logs: list[str], data: st.DataObject) -> None:
    text = "\n".join(logs)
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 60)))
    changed = text[:at] + data.draw(st.text(max_size=30)) + text[until:]
    language = data.draw(st.sampled_from(LANGUAGES))
    said = diagnose(log=scan([changed.encode("utf-8", "replace")], RULES), language=language)
    for one in said.findings + said.ignored:
        assert one.evidence
        assert one.fix
        assert one.summary


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (RETRACED.format(n=5, name="f"), "rt.retracing"),
        ("WARNING:" + RAN_OUT, "rt.data_ran_out"),
        (CRASHED, "rt.segfault"),
        ("bash: line 55: 31424 Segmentation fault      python train.py", "rt.segfault"),
        # tensorflow#40186, tensorflow#41802
        ('[1]    25266 segmentation fault (core dumped)  python -c "import tensorflow"',
         "rt.segfault"),
        ("Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)", "rt.segfault"),
        ("    State:          Terminated\n      Reason:       Error\n      Exit Code:    139\n",
         "rt.segfault"),
        ("Fatal Python error: Bus error", "rt.bus_error"),
        ("2026-11-24 04:56:18 train.sh: line 3: 811 Bus error               (core dumped) python x",
         "rt.bus_error"),
    ],
)  # fmt: skip
def test_a_message_of_a_run_has_its_cause(log: str, cause: str) -> None:
    (found,) = answer(log, *RULES).findings
    assert found.cause == cause


def test_the_function_that_is_traced_again_is_named() -> None:
    name = "Model.make_predict_function.<locals>.predict_function"
    (found,) = answer(RETRACED.format(n=6, name=name), *RULES).findings
    assert found.summary == f"{name} is traced again in most of its calls."


@pytest.mark.parametrize("line", ["Segmentation fault (core dumped)", "Bus error (core dumped)"])
def test_the_line_of_a_crash_proves_nothing_and_gives_way_to_what_does(line: str) -> None:
    (alone,) = answer(line, *RULES).findings
    assert alone.verdict == "likely"
    assert alone.summary.endswith("this line alone does not prove which.")
    above = "E cuda_driver.cc:1011] could not synchronize: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal\n"
    assert answer(above + line, *RULES).findings[0].cause == "rt.gpu_crash"


def test_a_bus_error_beside_nccl_is_its_shared_memory() -> None:
    log = "NCCL INFO Channel 00 : 0[1a000] -> 1[1b000] via SHM/direct\nBus error (core dumped)\n"
    (found,) = answer(log, *RULES).findings
    assert found.cause == "nccl.shm"


def test_a_corrected_fault_of_the_pci_bus_is_no_bus_error() -> None:
    line = "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer"
    assert "rt.bus_error" not in {one.cause for one in answer(line, *RULES).findings}
