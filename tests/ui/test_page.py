from __future__ import annotations

import json
import re
import time
import tomllib
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

import pytest
from tests import chromium
from tests.ui.browsing import READY, WIDER, needs_browser, put, shown
from tests.ui.what_ifs import GIVEN, MODEL

from tfdyno.cli.main import main
from tfdyno.core.base.language import LANGUAGES
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.ui import page
from tfdyno.ui.texts import TEXTS
from tfdyno.view.draw.palette import BY_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chromium import Page
    from tests.ui.running import Running


def test_the_page_loads_nothing_from_anywhere_and_holds_no_inline_code() -> None:
    contents = {path: content.decode() for path, content, _ in page.files()}
    pages = [one.decode() for path in page.PAGES for one in page.pages(path).values()]
    assert len(pages) == 6
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
    controls = re.findall(r"<(?:input|select)[^>]*>", whole)
    assert len(controls) == 11
    for control in controls:
        before = whole[: whole.index(control)]
        assert before.rindex("<label") > before.rfind("</label>"), control


def test_the_workload_of_the_command_line_stands_first() -> None:
    assert json.loads(page.state(GIVEN))["workloads"][0] == MODEL
    assert json.loads(page.state(None))["workload"] == "keras:ResNet50"


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
    for _ in range(15):  # three links, then the button and the controls
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
    scripts = sorted(page.FILES.glob("*.js"))
    assert {f"/{path.name}" for path in scripts} <= {path for path, *_ in page.files()}
    assert len(scripts) >= 4
    for path in scripts:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|"
                             r"new Function", path.read_text())  # fmt: skip


@needs_browser
@pytest.mark.browser
def test_the_skip_link_moves_the_focus_and_no_control(tab: Page) -> None:
    tab.size(1180, 1000)
    put(tab, "batch_size", 24)
    before = tab.run("return location.hash;")
    tab.run("document.querySelector('.skip').click();")
    assert tab.run("return [document.activeElement.id, location.hash];") == ["answer", before]
    assert tab.run("return document.querySelector('[name=batch_size]').value;") == "24"


@needs_browser
@pytest.mark.browser
def test_nothing_of_the_last_answer_stands_beside_a_refusal(tab: Page) -> None:
    put(tab, "workload", "os:system")
    assert shown(tab, "#told").startswith("the page does not run os:system")
    for name in ("step", "rate", "hours", "cost"):
        assert shown(tab, f"#t-{name} dd").strip() == "–"
    for selector in ("#memory", "#split", "#roof", "#choices", "#notes", "#next", "#ctx"):
        assert shown(tab, selector) == "", selector
    assert shown(tab, "#headline") == "What if?"
    tab.problems.clear()  # the browser notes the refused answers
    put(tab, "workload", MODEL)
    assert shown(tab, "#cmd-step").startswith(f"tfdyno estimate {MODEL}")
    assert shown(tab, "#split")


@needs_browser
@pytest.mark.browser
def test_a_run_that_nobody_offers_asks_for_a_price_and_a_wrong_length_is_told(tab: Page) -> None:
    put(tab, "count", 16)
    put(tab, "gpu", "rtx-3090")
    assert "no offer: give your price" in shown(tab, "#t-cost")
    assert shown(tab, "#told").startswith("Limited by ")
    assert shown(tab, "#cmd-run") == ""
    put(tab, "epochs", "-3")
    assert "no offer" not in shown(tab, "#t-cost")
    assert shown(tab, "#told").startswith("epochs -3 is not possible")
    put(tab, "epochs", "")
    put(tab, "count", 1)
    tab.problems.clear()


@needs_browser
@pytest.mark.browser
def test_a_share_of_a_card_is_named_so_and_is_not_the_card(tab: Page, server: Running) -> None:
    """Azure rents a third and a half of an A10; the page asks for whole ones."""
    put(tab, "gpu", "a10")
    rows = answer(server, "run", gpu="a10", batch_size=24)["ranking"]
    assert {row["gpu_fraction"] for row in rows} >= {0.333, 0.5, 1.0}
    whole = [row for row in rows if row["gpu_fraction"] == 1.0 and row["count"] == 1]
    assert f", {whole[0]['provider']}" in shown(tab, "#t-cost")
    if tab.run("return document.getElementById('more').textContent;").startswith("Show all"):
        tab.run("document.getElementById('more').click();")
    found = tab.run("""return [...document.querySelectorAll("#ranking tbody tr")]
      .filter((row) => row.cells[0].innerText.endsWith("A10"))
      .map((row) => [row.cells[0].innerText, row.className, Boolean(row.querySelector("button"))]);
      """)
    assert [name for name, *_ in found if " of " in name] == ["0.333 of A10", "0.5 of A10"]
    for name, kind, can_be_chosen in found:
        assert can_be_chosen == (" of " not in name)
        assert not (kind and " of " in name)


@needs_browser
@pytest.mark.browser
def test_a_copied_command_is_announced_and_its_button_becomes_what_it_was(tab: Page) -> None:
    button = "document.querySelector('#commands button')"
    tab.run(f"{button}.click();")
    tab.wait(f"{button}.textContent === 'Copied'")
    tab.run(f"{button}.click();")
    assert shown(tab, "p.out[role=status]") == "Copied"
    tab.wait(f"{button}.textContent === 'Copy'")
    assert shown(tab, "p.out[role=status]") == ""


@needs_browser
@pytest.mark.browser
def test_a_browser_that_stores_nothing_keeps_the_token_from_page_to_page(
    tab: Page, server: Running
) -> None:
    tab.open("about:blank")
    none = """Object.defineProperty(window, "localStorage",
      { get() { throw new DOMException("no", "SecurityError"); } });"""
    script = tab.ask("Page.addScriptToEvaluateOnNewDocument", source=none)["identifier"]
    try:
        tab.open(server.url.replace("#", "#gpu=t4&"))
        tab.wait(READY)
        for link, place in {
            "#language": "/?lang=zh", "[href='/results']": "/results?lang=zh",
            "p.pages [href='/live']": "/live?lang=zh", "p.pages #language": "/live?lang=en",
        }.items():  # fmt: skip
            tab.run(f'document.querySelector("{link}").click();')
            tab.wait(f"location.pathname + location.search === '{place}' && {READY} "
                     f"&& !location.href.includes('{server.token}')")  # fmt: skip
        assert shown(tab, "#told") != TEXTS["en"]["no_token"]
    finally:
        tab.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def saved(tab: Page, server: Running, settings: str, name: str, folder: Path) -> Path:
    """Open the settings, press "Save as", and download what is shown."""
    tab.size(1180, 1000)
    tab.open("about:blank")
    tab.open(server.url.replace("#", f"#{settings}&"))
    tab.wait(READY)
    assert shown(tab, f"#{name}-toml") == ""
    tab.run(f"document.getElementById('as-{name}').click();")
    tab.wait(f"document.getElementById('{name}-toml').textContent")
    tab.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.run(f"document.getElementById('{name}-download').click();")
    file, end_s = folder / f"{name}.toml", time.monotonic() + chromium.PATIENCE_S
    while not file.exists():
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return file


@needs_browser
@pytest.mark.browser
def test_the_settings_become_a_recipe_that_is_downloaded(
    tab: Page, server: Running, tmp_path: Path
) -> None:
    settings = "gpu=t4&batch_size=16&precision=mixed_float16"
    file = saved(tab, server, settings, "recipe", tmp_path)
    assert 'precision = "mixed_float16"' in shown(tab, "#recipe-toml")
    assert "Card, Offers." in shown(tab, "#recipe-told")
    assert shown(tab, "#cmd-write").startswith("tfdyno recipe show --set precision=mixed_float16")
    assert read_recipe(file).batch_size == 16
    put(tab, "batch_size", 32)
    assert shown(tab, "#recipe-toml") == ""  # it would be of other settings


@needs_browser
@pytest.mark.browser
def test_the_settings_become_steps_that_a_project_runs(
    tab: Page, server: Running, tmp_path: Path
) -> None:
    file = saved(tab, server, "gpu=t4&batch_size=16&usd_per_h=0.3", "project", tmp_path)
    assert shown(tab, "#recipe-toml") == ""
    assert shown(tab, "#cmd-do") == "tfdyno run"
    assert main(["run", str(file), "--dry-run", "--quiet"]) == 0
    steps = tomllib.loads(file.read_text())["steps"]
    assert steps["advise"]["usd-per-h"] == 0.3
    assert {one["batch-size"] for one in (steps["estimate"], steps["advise"])} == {16}
    put(tab, "batch_size", 32)
    assert shown(tab, "#project-toml") == ""
