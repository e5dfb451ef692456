from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.ui.browsing import READY, SET, WIDER, needs_browser, shown
from tests.ui.running import Running, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.chromium import Page


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("results")
    shutil.copytree(past_runs.DOCUMENTS, folder / "answers")
    with running("--folder", str(folder)) as found:
        yield found


@needs_browser
@pytest.mark.browser
def test_results_are_filtered_and_two_of_them_compared(tab: Page, shelf: Running) -> None:
    tab.size(1180, 1000)
    tab.open("about:blank")
    tab.run("document.body.dataset.ready = '';")
    tab.open(shelf.url.replace("/#", "/results#"))
    tab.wait(READY)
    rows = "return document.querySelectorAll('#results tbody tr').length;"
    assert tab.run(rows) == 12
    tab.run(SET % (*['"kind"'] * 2, '"bench"'))
    assert tab.run(rows) == 2
    assert shown(tab, "#count") == "2 of 12"
    for name in ("bench.json", "bench-fast.json"):
        tab.run(f"document.querySelector('[aria-label$=\"/{name}\"]').click();")
    tab.wait("document.querySelector('#gained tbody tr')")
    assert shown(tab, "#sides") == "From answers/bench.json to answers/bench-fast.json"
    assert "No difference, 1.083x" in shown(tab, "#gained tbody tr")
    link = tab.run("return location.href;")
    assert shelf.token not in link
    tab.open("about:blank")
    tab.open(link)
    tab.wait("document.querySelector('#gained tbody tr')")
    tab.wait("document.querySelectorAll('#results tbody tr').length === 2")
    for width_px in (360, 1180):
        tab.size(width_px, 900)
        assert tab.run(WIDER) == []
        assert tab.run("return document.documentElement.scrollWidth;") <= width_px


@needs_browser
@pytest.mark.browser
def test_every_control_of_the_results_has_a_name(tab: Page, shelf: Running) -> None:
    tab.open("about:blank")
    tab.open(shelf.url.replace("/#", "/results#"))
    tab.wait(READY)
    names = tab.run("""return [...document.querySelectorAll("main :is(input, select, button)")]
      .map((one) => one.ariaLabel || one.labels?.[0]?.innerText.trim() || one.innerText.trim());""")
    assert len(names) == 14
    assert all(names)
    assert len(set(names)) == 14


@needs_browser
@pytest.mark.browser
def test_the_skip_link_of_the_results_keeps_what_is_filtered(tab: Page, shelf: Running) -> None:
    tab.open("about:blank")
    tab.open(shelf.url.replace("/#", "/results#kind=bench&"))
    tab.wait(READY)
    tab.wait("document.querySelectorAll('#results tbody tr').length === 2")
    tab.run("document.querySelector('.skip').click();")
    assert tab.run("return [document.activeElement.id, location.hash];") == [
        "answer", "#kind=bench",
    ]  # fmt: skip


@needs_browser
@pytest.mark.browser
def test_a_result_that_has_gone_is_told_and_the_next_two_are_compared(
    tab: Page, tmp_path: Path
) -> None:
    for name in ("bench", "bench-fast", "tune"):
        shutil.copy(past_runs.DOCUMENTS / f"{name}.json", tmp_path)
    with running("--folder", str(tmp_path)) as server:
        tab.open("about:blank")
        tab.open(server.url.replace("/#", "/results#"))
        tab.wait(READY)
        (tmp_path / "tune.json").unlink()

        def tick(name: str) -> None:
            tab.run(f"document.querySelector('[aria-label$=\" {name}.json\"]').click();")

        tick("tune")
        tick("bench")
        tab.wait("document.getElementById('told').classList.contains('wrong')")
        assert shown(tab, "#told").startswith("there is no result")
        assert shown(tab, "#difference") == ""
        tab.problems.clear()  # the browser notes the refused answer
        tick("bench-fast")
        tab.wait("!document.getElementById('difference').hidden")
        assert shown(tab, "#sides") == "From bench.json to bench-fast.json"
        assert shown(tab, "#told").startswith("3 results.")
