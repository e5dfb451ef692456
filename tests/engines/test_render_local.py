"""A plan as processes of this machine."""

from __future__ import annotations

import subprocess

from tests.engines.plans import check_golden, full, plan

from tfdyno.engines.render_local import node_variables, render_local


def test_the_script_is_as_expected() -> None:
    check_golden("small.sh", render_local(plan("local")))
    check_golden("full.sh", render_local(full("local", nodes=2, gpus_per_node=2)))


def test_the_shell_reads_it() -> None:
    text = render_local(full("local"))
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_process_has_cards_and_an_address_of_its_own() -> None:
    made = plan("local", nodes=2, gpus_per_node=2)
    variables = node_variables(made, 1, (5000, 5001))
    assert variables == {
        "CUDA_VISIBLE_DEVICES": "2,3",
        "TFDYNO_WORKERS": "127.0.0.1:5000,127.0.0.1:5001",
        "TFDYNO_RANK": "1",
    }


def test_without_cards_all_of_them_are_hidden() -> None:
    assert node_variables(plan("local", nodes=1), 0, (5000,)) == {"CUDA_VISIBLE_DEVICES": "-1"}
