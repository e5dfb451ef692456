"""The page in a real browser: light, dark and on a phone, with and without its script."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests import past_runs
from tests.view import answers

from tfdyno.jobs.project.report import benches, report
from tfdyno.view.choose.html import render_report
from tfdyno.view.draw.palette import BY_NAME
from tfdyno.view.project.page import project_page

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.advice import Advice

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not BROWSER, reason="no Chromium: apt-get install chromium"),
]

# The browser's window cannot be as narrow as a phone: the page stands in a frame of that width
# and reports what it finds to the page around it.
OUTER = """<!doctype html><title>nothing reported</title>
<script>addEventListener("message", (event) => {{ document.title = event.data; }});</script>
<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>"""
WATCH = """<script>window.problems = [];
addEventListener("error", (event) => window.problems.push(String(event.message)));
const warn = console.error; console.error = (...all) => { window.problems.push(all.join(" ")); };
</script>"""
PROBE = """<script>addEventListener("load", async () => {
const report = {problems: window.problems, width: innerWidth,
  scroll: document.documentElement.scrollWidth,
  ground: getComputedStyle(document.body).backgroundColor};
report.found = await (async () => { %s })().catch((error) => "failed: " + error);
parent.postMessage(JSON.stringify(report), "*"); });</script>"""
WIDER = """const limit = document.documentElement.clientWidth + 0.5;
return [...document.querySelectorAll("main *, header *, footer *")].filter((one) =>
  one.getBoundingClientRect().right > limit && !one.closest(".scroll, nav, svg, .skip"))
  .map((one) => one.tagName + "." + one.className).slice(0, 5);"""


def render(advice: Advice) -> str:
    return render_report(
        advice=advice, trace=answers.trace(), program=answers.program(), gpus=answers.gpus()
    )


@pytest.fixture(scope="module")
def page() -> str:
    return render(answers.advice())


def probe(
    page: str,
    folder: Path,
    *,
    code: str = "return null;",
    width_px: int = 1000,
    dark: bool = False,
) -> dict[str, Any]:
    """Open ``page``, run ``code`` in it, and give back what it returns and what was seen."""
    whole = page.replace("<head>", "<head>" + WATCH).replace("</body>", PROBE % code + "</body>")
    (folder / "page.html").write_text(whole)
    (folder / "outer.html").write_text(OUTER.format(width=width_px))
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--window-size=1100,1000",
            "--virtual-time-budget=5000",
            "--dump-dom",
            (folder / "outer.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    assert title, done.stderr[-500:]
    report: dict[str, Any] = json.loads(html.unescape(title.group(1)))
    assert report["problems"] == []
    return report


def colour(text: str) -> str:
    red, green, blue = (int(part) for part in re.findall(r"\d+", text)[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [360, 720, 1000])
def test_nothing_scrolls_sideways(page: str, tmp_path: Path, width_px: int, dark: bool) -> None:
    seen = probe(page, tmp_path, code=WIDER, width_px=width_px, dark=dark)
    assert seen["found"] == []
    assert seen["scroll"] <= seen["width"] == width_px
    assert colour(seen["ground"]) == (BY_NAME["bg"].dark if dark else BY_NAME["bg"].light)


def test_long_names_do_not_widen_a_phone(tmp_path: Path) -> None:
    advice = answers.advice()
    long = "RTX PRO 6000 Blackwell Workstation Edition with a name that never ends"
    ranking = tuple(replace(one, gpu_name=long) for one in advice.ranking)
    picks = tuple(
        replace(pick, candidate=replace(pick.candidate, gpu_name=long), reason=long * 3)
        for pick in advice.picks
    )
    trace = answers.trace()
    workload = replace(trace.workload, reference="/home/someone/" + "deep/" * 20 + "train.py")
    page = render_report(
        advice=replace(advice, ranking=ranking, picks=picks, headline=long),
        trace=replace(trace, workload=workload),
        program=answers.program(),
        gpus=answers.gpus(),
    )
    seen = probe(page, tmp_path, code=WIDER, width_px=360)
    assert seen["found"] == []
    assert seen["scroll"] <= 360


def test_each_width_shows_its_own_drawing(page: str, tmp_path: Path) -> None:
    code = """return ["wide", "narrow"].map((name) =>
      [...document.querySelectorAll(".plot ." + name)].filter((one) => one.offsetWidth).length);"""
    assert probe(page, tmp_path, code=code)["found"] == [6, 0]
    assert probe(page, tmp_path, code=code, width_px=360)["found"] == [0, 6]


def test_a_column_heading_sorts_inside_each_group_and_back(page: str, tmp_path: Path) -> None:
    code = """const button = document.querySelector("[data-c='3']");
    const hours = () => [...document.querySelectorAll("#rank tbody")].map((body) =>
      [...body.rows].map((row) => row.cells[3]?.dataset.k).filter(Boolean).map(Number));
    button.focus(); button.click(); const up = hours();
    const state = button.parentElement.getAttribute("aria-sort");
    button.click(); return [up, hours(), state, document.activeElement === button];"""
    up, down, state, focused = probe(page, tmp_path, code=code)["found"]
    assert all(group == sorted(group) for group in up)
    assert all(group == sorted(group, reverse=True) for group in down)
    assert sorted(up[0]) != list(map(float, range(len(up[0]))))
    assert (state, focused) == ("ascending", True)


def test_filters_leave_what_matches(page: str, tmp_path: Path) -> None:
    code = """const form = document.getElementById("filter");
    const type = (name, value) => { form.elements[name].value = value;
      form.dispatchEvent(new Event("input")); };
    const names = () => [...document.querySelectorAll("#rank tbody tr[data-f]")]
      .filter((row) => row.offsetHeight).map((row) => row.cells[1].textContent);
    const all = names().length; type("text", "h100"); const some = names();
    const said = document.getElementById("found").textContent;
    type("rent", "spot"); const one = names(); form.reset();
    await new Promise((done) => setTimeout(done, 20));
    return [all, some, said, one, names().length, form.hidden];"""
    everything, some, said, one, again, hidden = probe(page, tmp_path, code=code)["found"]
    assert everything == again == 14
    assert len(some) == 3
    assert all("H100" in name for name in some)
    assert said == "3 of 14"
    assert len(one) == 1
    assert hidden is False


def many() -> Advice:
    advice = answers.advice()
    copies = tuple(
        replace(one, gpu=f"{one.gpu}-{k}", gpu_name=f"{one.gpu_name} {k}", pareto=False)
        for k in range(35)
        for one in advice.ranking
    )
    return replace(advice, ranking=(*advice.ranking, *copies))


VISIBLE = """[...document.querySelectorAll("#rank tr[data-f]")]
  .filter((row) => row.offsetHeight).length"""


def test_hundreds_of_rows_are_folded_and_unfold_on_request(tmp_path: Path) -> None:
    code = f"""const folded = {VISIBLE};
    document.querySelectorAll(".fold input").forEach((box) => box.click());
    return [folded, {VISIBLE}, performance.now()];"""
    folded, unfolded, spent_ms = probe(render(many()), tmp_path, code=code)["found"]
    assert folded < 30
    assert unfolded == 14 * 36
    assert spent_ms < 10_000


def test_folding_needs_no_script(tmp_path: Path) -> None:
    bare = re.sub(r'<script>"use strict".*?</script>', "", render(many()), flags=re.S)
    code = f"""const folded = {VISIBLE};
    document.querySelector(".fold input").click();
    return [folded, {VISIBLE}, document.getElementById("filter").offsetHeight];"""
    folded, unfolded, filter_height = probe(bare, tmp_path, code=code)["found"]
    assert folded < 30
    assert unfolded > 200
    assert filter_height == 0


def test_another_card_can_be_chosen_without_the_script(page: str, tmp_path: Path) -> None:
    bare = re.sub(r'<script>"use strict".*?</script>', "", page, flags=re.S)
    code = """const heads = () => [...document.querySelectorAll("#roofline .kick")]
      .filter((one) => one.offsetHeight).map((one) => one.textContent);
    const first = heads();
    document.querySelectorAll("#roofline .cards input")[1].click();
    return [first, heads()];"""
    first, second = probe(bare, tmp_path, code=code)["found"]
    assert first == ["Roofline, one H100 SXM"]
    assert second == ["Roofline, one A100 SXM4 80 GB"]


def test_a_mark_says_what_it_is_when_pointed_at(page: str, tmp_path: Path) -> None:
    code = """const mark = document.querySelector("#cost .wide [data-tip]");
    mark.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    const tip = document.querySelector(".tip"); const box = tip.getBoundingClientRect();
    const inside = box.left >= 0 && box.right <= innerWidth;
    const shown = [tip.textContent, tip.hidden, inside];
    document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
    return [...shown, tip.hidden];"""
    text, hidden, inside, closed = probe(page, tmp_path, code=code)["found"]
    assert re.search(r": \d.* h \(.*\), \$\d", text)
    assert (hidden, inside, closed) == (False, True, True)


def test_labels_of_a_figure_do_not_cover_each_other(page: str, tmp_path: Path) -> None:
    code = """const hits = [];
    for (const plot of document.querySelectorAll(".plot > div")) {
      const boxes = [...plot.querySelectorAll("text")].filter((one) => one.textContent)
        .map((one) => [one.textContent, one.getBoundingClientRect()]).filter(([, b]) => b.width);
      boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([two, b]) => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 4) hits.push(one + " / " + two); })); }
    return hits;"""
    assert probe(page, tmp_path, code=code)["found"] == []
    assert probe(page, tmp_path, code=code, width_px=360)["found"] == []


def test_keyboard_focus_is_visible_on_everything_that_takes_it(page: str, tmp_path: Path) -> None:
    code = """const bare = [];
    for (const one of document.querySelectorAll("a, button, input, select, summary, [tabindex]")) {
      if (!one.checkVisibility() || !one.offsetHeight) continue;
      one.focus({focusVisible: true});
      const style = getComputedStyle(one);
      if (document.activeElement !== one || style.outlineStyle === "none") bare.push(one.outerHTML);
    }
    return bare.slice(0, 5);"""
    assert probe(page, tmp_path, code=code)["found"] == []


@pytest.mark.parametrize("name", ["whole", "failed"])
@pytest.mark.parametrize("width_px", [360, 1000])
def test_a_project_of_any_names_does_not_scroll_sideways(
    tmp_path: Path, name: str, width_px: int
) -> None:
    history = past_runs.two_runs(tmp_path)
    long = "a_step_with_a_name_that_does_not_end_" * 3
    steps = (replace(past_runs.step_run(long, rests_on={f"option {long}": long * 2}),
                     headline="It is done"),)  # fmt: skip
    past_runs.put(history, steps[0], {"a": 1})
    if name == "failed":
        past_runs.failed_run(history)
        history.write(past_runs.project_run("20261124-090000-" + "f" * 60, *steps, status="failed"))
    found = report(history)
    seen = probe(
        project_page(found, benches(found.told)), tmp_path, code=WIDER, width_px=width_px
    )  # fmt: skip
    assert seen["found"] == []
    assert seen["scroll"] <= width_px
