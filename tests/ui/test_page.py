from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

import pytest
from tests import chromium, past_runs
from tests.ui.running import Running, running
from tests.ui.what_ifs import GIVEN, MODEL

from tfdyno.ui import page
from tfdyno.ui.texts import LANGUAGES, TEXTS
from tfdyno.view.draw.palette import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chromium import Page

needs_browser = pytest.mark.skipif(
    not chromium.BROWSER, reason="no Chromium: apt-get install chromium"
)
READY = "document.body.dataset.ready === 'true'"
SET = """const field = document.querySelector(`[name=${%s}]`) ?? document.getElementById(%s);
field.value = %s; field.dispatchEvent(new Event("input", {bubbles: true}));"""
WIDER = """const limit = document.documentElement.clientWidth + 0.5;
return [...document.querySelectorAll("main *, header *, footer *")].filter((one) =>
  one.getBoundingClientRect().right > limit && !one.closest(".scroll, svg, .skip, .out"))
  .map((one) => one.tagName + "#" + one.id + "." + one.className).slice(0, 5);"""


def test_the_page_loads_nothing_from_anywhere_and_holds_no_inline_code() -> None:
    contents = {path: content.decode() for path, content, _ in page.files()}
    pages = [one.decode() for path in page.PAGES for one in page.pages(path).values()]
    assert len(pages) == 4
    for whole in pages:
        assert "{{" not in whole
        linked = set(re.findall(r"(?:src|href)=\"([^\"]+)\"", whole))
        others = {f"?lang={language}" for language in LANGUAGES}
        assert linked <= {"data:,", "#answer", *page.PAGES, *contents, *others}
        code = r"<script(?! type=\"application/json\"| src=)|\sstyle=|\son\w+="
        assert not re.search(code, whole)
    for text in contents.values():
        assert set(re.findall(r"https?://[^\s\"']+", text)) <= {"http://www.w3.org/2000/svg"}
        assert "@import" not in text


def test_every_control_has_a_label() -> None:
    whole = page.pages("/")["en"].decode()
    for control in re.findall(r"<(?:input|select)[^>]*>", whole):
        before = whole[: whole.index(control)]
        assert before.rindex("<label") > before.rfind("</label>"), control


def test_the_workload_of_the_command_line_stands_first() -> None:
    assert json.loads(page.state(GIVEN))["workloads"][0] == MODEL
    assert json.loads(page.state(None))["workload"] == "keras:ResNet50"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory, server: Running) -> Iterator[Page]:
    with chromium.page(tmp_path_factory.mktemp("browser")) as found:
        found.size(1180, 1000)
        found.open(server.url)
        found.wait(READY)
        yield found
        assert found.problems == []


def put(tab: Page, name: str, value: object) -> None:
    """Move a control, and wait for all answers."""
    tab.run("document.body.dataset.ready = 'false';" + SET % (
        json.dumps(name), json.dumps(name), json.dumps(str(value))))  # fmt: skip
    tab.wait(READY)


def shown(tab: Page, selector: str) -> str:
    found: str = tab.run(f"return document.querySelector({json.dumps(selector)})?.innerText ?? '';")
    return found.replace("\u00a0", " ")


def answer(server: Running, panel: str, **settings: object) -> dict[str, Any]:
    status, found = server.json(f"/api/{panel}?{urlencode({'workload': MODEL, **settings})}")
    assert status == 200
    document: dict[str, Any] = found["document"]
    return document


@needs_browser
@pytest.mark.browser
def test_moving_the_controls_changes_every_figure_to_the_answer_of_the_commands(
    tab: Page, server: Running
) -> None:
    for name, value in {
        "gpu": "t4", "count": 2, "batch_size": 64, "precision": "mixed_float16",
        "execution": "graph", "epochs": 9, "samples": 5_000_000, "usd_per_h": 0.8,
        "offers": "every",
    }.items():  # fmt: skip
        put(tab, name, value)
    asked = {"gpu": "t4", "count": 2, "batch_size": 64, "precision": "mixed_float16",
             "execution": "graph"}  # fmt: skip
    one = answer(server, "step", **asked)["estimates"][0]
    more = {"epochs": 9, "samples": 5_000_000}
    row = answer(server, "run", **asked, **more, usd_per_h=0.8)["ranking"][0]
    ranking = answer(server, "ranking", **asked, **more, offers="every")

    def number(selector: str) -> tuple[float, str]:
        value, unit = shown(tab, selector).splitlines()[0].split()
        return float(value.replace(",", "")), unit

    step, unit = number("#t-step dd")
    assert step * {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit] == pytest.approx(
        one["step_s"]["best"], rel=6e-3
    )
    value, unit = number("#t-hours dd")
    scale = {"min": 1 / 60, "h": 1.0, "days": 24.0}[unit]
    assert value * scale == pytest.approx(row["hours"], rel=6e-3)
    cost = shown(tab, "#t-cost dd").splitlines()[0]
    assert float(cost.removeprefix("$").replace(",", "")) == pytest.approx(
        row["cost_usd"], rel=0.05
    )
    assert "T4" in shown(tab, "#headline")
    assert "batch 64 in mixed_float16, graph" in shown(tab, "#told")
    assert shown(tab, "#advice") == ranking["headline"]
    assert tab.run("return document.querySelectorAll('#pareto circle').length;") == 1 + len(
        [each for each in ranking["ranking"]
         if each["verdict"] == "feasible" and each["cost_usd"]]
    )  # fmt: skip
    assert tab.run("return document.querySelectorAll('#roofline circle').length;") == len(
        [each for each in one["roofline"]
         if each["intensity_flops_per_byte"] > 0 and each["rate_flops_per_s"] > 0]
    )  # fmt: skip
    assert shown(tab, "#cmd-run") == (
        f"tfdyno advise {MODEL} --gpu t4 --count 2 --usd-per-h 0.8 --epochs 9 --samples 5000000 "
        "--batch-size 64 --precision mixed_float16 --execution graph --route quick"
    )
    assert shown(tab, "#cmd-step") == (
        f"tfdyno estimate {MODEL} --gpu t4 --replicas 2 --batch-size 64 "
        "--precision mixed_float16 --execution graph"
    )


@needs_browser
@pytest.mark.browser
def test_the_memory_bar_is_as_long_as_its_bytes(tab: Page, server: Running) -> None:
    put(tab, "gpu", "l4")
    found = tab.run("""const bars = [...document.querySelectorAll("#memory .plot > svg rect")];
      const limit = document.querySelector("#memory .plot > svg line");
      const ends = bars.slice(1).map((one) => +one.getAttribute("x") + +one.getAttribute("width"));
      return [Math.max(...ends), +limit.getAttribute("x1"),
        document.querySelector("#memory .note").textContent];""")
    held, usable, told = found
    query = dict(parse_qs(tab.run("return location.hash.slice(1);")))
    asked = {name: values[0] for name, values in query.items() if name != "workload"}
    one = answer(server, "step", **asked)["estimates"][0]
    parts = sum(one["memory_parts_bytes"].values())
    assert held == pytest.approx(usable * parts / one["usable_memory_bytes"], abs=1.6)  # pixels
    assert told.startswith({"yes": "Fits", "no": "Does not fit"}.get(one["fits"], "May fit"))


@needs_browser
@pytest.mark.browser
def test_the_slider_sets_the_batch_and_the_batch_the_slider(tab: Page) -> None:
    put(tab, "slider", 7)
    assert tab.run("return document.querySelector('[name=batch_size]').value;") == "128"
    put(tab, "batch_size", 250)
    assert tab.run("return document.getElementById('slider').value;") == "8"


@needs_browser
@pytest.mark.browser
def test_a_link_holds_the_settings_and_not_the_token(tab: Page, server: Running) -> None:
    put(tab, "gpu", "rtx-4090")
    put(tab, "batch_size", 48)
    link = tab.run("return location.href;")
    assert server.token not in link
    assert "gpu=rtx-4090" in link
    tab.run("location.hash = '#gpu=l4';")
    tab.wait("document.querySelector('[name=gpu]').value === 'l4'")
    tab.open("about:blank")
    tab.open(link)
    tab.wait(READY)
    assert "RTX 4090" in shown(tab, "#headline")
    assert tab.run("return document.querySelector('[name=batch_size]').value;") == "48"


@needs_browser
@pytest.mark.browser
def test_a_row_of_the_ranking_becomes_the_choice_and_all_rows_can_be_shown(tab: Page) -> None:
    name = shown(tab, "#ranking tbody tr:nth-child(3) th")
    rows = "return document.querySelectorAll('#ranking tbody tr').length;"
    few = tab.run(rows)
    tab.run("document.getElementById('more').click();")
    assert tab.run(rows) > few == 12
    tab.run("""document.body.dataset.ready = 'false';
      document.querySelector("#ranking tbody tr:nth-child(3) button").click();""")
    tab.wait(READY)
    assert name.split(" × ")[-1] in shown(tab, "#headline")


@needs_browser
@pytest.mark.browser
def test_a_wrong_value_is_told_and_the_next_right_one_is_answered(tab: Page) -> None:
    put(tab, "workload", "os:system")
    assert shown(tab, "#told").startswith("the page does not run os:system")
    tab.problems.clear()  # the browser notes the refused answer
    put(tab, "workload", MODEL)
    assert shown(tab, "#told").startswith("Limited by ")


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [360, 390, 800, 1180])
def test_nothing_scrolls_sideways_in_any_width_or_theme(
    tab: Page, width_px: int, dark: bool
) -> None:
    tab.size(width_px, 900, dark=dark)
    assert tab.run(WIDER) == []
    assert tab.run("return document.documentElement.scrollWidth;") <= width_px
    ground = tab.run("return getComputedStyle(document.body).backgroundColor;")
    red, green, blue = (int(part) for part in re.findall(r"\d+", ground)[:3])
    wanted = BY_NAME["bg"].dark if dark else BY_NAME["bg"].light
    assert f"#{red:02x}{green:02x}{blue:02x}" == wanted


@needs_browser
@pytest.mark.browser
def test_it_is_used_by_the_keyboard_alone(tab: Page) -> None:
    """Tab goes through every control in order, each with a visible focus; an arrow moves it."""
    tab.size(1180, 1000)
    tab.run("document.activeElement.blur(); document.querySelector('.skip').focus();")
    names = []
    for _ in range(14):
        tab.key("Tab", 9)
        names.append(
            tab.run("""const one = document.activeElement;
          const style = getComputedStyle(one);
          return [one.name || one.id, style.outlineStyle !== "none"];""")
        )
    order = ["share", "workload", "gpu", "count", "batch_size", "slider", "precision",
             "execution", "epochs", "samples", "usd_per_h", "offers"]  # fmt: skip
    assert [name for name, _ in names if name in order] == order
    assert all(visible for _, visible in names)
    tab.run("document.body.dataset.ready = 'false'; document.getElementById('slider').focus();")
    before = tab.run("return document.getElementById('slider').value;")
    tab.key("ArrowLeft", 37)
    tab.wait(READY)
    after = tab.run("return document.getElementById('slider').value;")
    assert int(after) == int(before) - 1
    assert tab.run("return document.querySelector('[name=batch_size]').value;") == str(
        2 ** int(after)
    )


@needs_browser
@pytest.mark.browser
def test_what_is_drawn_has_words_for_those_who_do_not_see_it(tab: Page) -> None:
    labels = tab.run("""return [...document.querySelectorAll("figure .plot > svg")]
      .map((one) => [one.getAttribute("role"), one.getAttribute("aria-label")]);""")
    assert len(labels) == 4
    assert all(role == "img" and label and "{" not in label for role, label in labels)
    assert tab.run("return document.getElementById('told').getAttribute('aria-live');") == "polite"


@needs_browser
@pytest.mark.browser
def test_without_a_token_the_page_says_what_to_open(tab: Page, server: Running) -> None:
    tab.run("localStorage.clear();")
    tab.open("about:blank")
    tab.open(server.url.partition("#")[0])
    tab.wait("document.getElementById('told').textContent")
    assert shown(tab, "#told") == (
        "This page has no token: open the address that tfdyno ui printed."
    )


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
def test_another_language_keeps_the_settings(tab: Page, server: Running) -> None:
    tab.size(390, 900)
    tab.open("about:blank")
    tab.open(server.url.replace("#", "#gpu=t4&batch_size=16&"))
    tab.wait(READY)
    tab.run("document.getElementById('language').click();")
    tab.wait("document.documentElement.lang === 'zh' && " + READY)
    assert shown(tab, "#headline").startswith("Tesla T4：每步 ")
    assert shown(tab, "#memory figcaption") == TEXTS["zh"]["memory"]
    assert tab.run("return document.querySelector('[name=batch_size]').value;") == "16"
    assert tab.run(WIDER) == []
    tab.run("document.getElementById('language').click();")
    tab.wait("document.documentElement.lang === 'en' && " + READY)
    assert shown(tab, "#headline").startswith("Tesla T4: ")


def test_words_of_a_file_are_text_on_the_page() -> None:
    """No script puts what it was sent into the page as markup."""
    for path in page.FILES.glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|"
                             r"new Function", path.read_text())  # fmt: skip
