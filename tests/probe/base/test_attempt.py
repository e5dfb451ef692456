from __future__ import annotations

import threading
import time

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.attempt import Part, attempt, found, not_run
from tfdyno.probe.base.host import Host

HOST, NOTHING = Host(), MachineFacts()


def test_what_a_probe_finds_is_added_with_its_result() -> None:
    facts = attempt("x", lambda _h, _f: found(glibc="2.31"), HOST, NOTHING)
    assert (facts.glibc, facts.probes[0].name, facts.probes[0].state) == ("2.31", "x", "ok")


def test_a_probe_that_raises_is_a_result() -> None:
    def broken(_host: Host, _facts: MachineFacts) -> Part:
        raise PermissionError("no")

    (result,) = attempt("x", broken, HOST, NOTHING).probes
    assert (result.state, result.reason) == ("failed", "PermissionError: no")


def test_a_probe_that_hangs_is_left_behind() -> None:
    def hangs(_host: Host, _facts: MachineFacts) -> Part:
        threading.Event().wait(30)
        return found(glibc="late")

    began_s = time.perf_counter()
    facts = attempt("x", hangs, HOST, NOTHING, limit_s=0.05)
    assert time.perf_counter() - began_s < 25
    assert (facts.probes[0].state, facts.glibc) == ("failed", "")
    assert facts.probes[0].reason == "no answer within 0.05 s"


def test_not_run_keeps_its_reason() -> None:
    facts = attempt("x", lambda _h, _f: not_run("of this"), HOST, NOTHING)
    assert (facts.probes[0].state, facts.probes[0].reason) == ("not_run", "of this")
