"""The day as one page that needs nothing else: what passed, what did not, and why."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from gpu_day.verdict import ORDER, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_day.verdict import Row

WIDTH, HEIGHT = 640, 90
MARKS = {"passed": "✓", "failed": "✗", "skipped": "–", "not run": "○"}
STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#5b6470;--page:#fff;--card:#f6f7f9;--line:#d9dde3;
--good:#1a7f37;--bad:#b42318;--off:#6b7280;--load:#1f6feb;--held:#8250df}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#9aa4b2;--page:#14171b;--card:#1c2026;
--line:#333a44;--good:#4ac26b;--bad:#ff7b72;--off:#9aa4b2;--load:#6cb0ff;--held:#c297ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.15rem;margin:2rem 0 .5rem}
p{margin:.25rem 0}.dim{color:var(--dim)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:1rem 0}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
.step{border:1px solid var(--line);border-radius:.5rem;background:var(--card);padding:.6rem .9rem;
margin:.5rem 0}
.head{display:flex;gap:.6rem;align-items:baseline;flex-wrap:wrap}
.head b{flex:1 1 12rem}.status{font-weight:600;white-space:nowrap}
.passed{color:var(--good)}.failed{color:var(--bad)}.skipped,.not{color:var(--off)}
table{border-collapse:collapse;width:100%;table-layout:fixed;margin:.4rem 0;font-size:.92rem}
td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;overflow-wrap:anywhere}
th{color:var(--dim);font-weight:500}
th:nth-child(1){width:30%}th:nth-child(3){width:26%}
details{margin:.3rem 0 0;font-size:.88rem}summary{cursor:pointer;color:var(--dim)}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;font-size:.82rem}
a{color:var(--load)}
svg{width:100%;height:auto;display:block}svg text{fill:var(--dim);font-size:11px}
@media(max-width:34rem){table,tbody,tr,td{display:block;width:auto}thead{display:none}
td:first-child{width:auto;color:var(--dim);padding-top:.4rem}td{padding:0 0 .1rem}
td[data-of]::before{content:attr(data-of) " ";color:var(--dim)}}
"""


def page(document: dict[str, Any], points: Sequence[dict[str, float]]) -> str:
    """The page of a day.

    Args:
        document: What ``day.json`` holds.
        points: Of the telemetry; none where nothing was watched.
    """
    about = document["about"]
    rows = [row_of(raw) for raw in document["steps"]]
    title = f"{about['card']}: {_counts(rows)}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{_safe(title)}</h1>{_lead(about, document.get('note', ''))}{_about(about)}"
        f"<h2>Steps</h2>{''.join(_step(row, is_cpu=about['is_cpu']) for row in rows)}"
        f"<h2>Meanwhile</h2>{_meanwhile(points, is_cpu=about['is_cpu'])}</main></body></html>\n"
    )


def _counts(rows: Sequence[Row]) -> str:
    counts = [(status, sum(row.status == status for row in rows)) for status in ORDER]
    return ", ".join(f"{count} {status}" for status, count in counts if count) or "nothing yet"


def _lead(about: dict[str, Any], note: str) -> str:
    said = []
    if about["is_cpu"]:
        said.append(
            "Every figure here is of a CPU: this tries the tool, and says nothing of a card."
        )
    if note:
        said.append(note)
    return "".join(f"<p>{_safe(one)}</p>" for one in said)


def _about(about: dict[str, Any]) -> str:
    shown = {
        "date": about.get("date"),
        "driver": about.get("driver"),
        "CPU": f"{about.get('cpu')}, {about.get('cores')} cores",
        "Python": about.get("python"),
        "TensorFlow": about.get("tensorflow"),
        "JAX": about.get("jax"),
        "Keras": about.get("keras"),
        "tfdyno": about.get("tfdyno"),
        "time given": f"{about.get('seconds_s', 0):g} s",
    }
    return (
        "<dl>"
        + "".join(
            f"<dt>{_safe(name)}</dt><dd>{_safe(str(value))}</dd>"
            for name, value in shown.items()
            if value
        )
        + "</dl>"
    )


def _step(row: Row, *, is_cpu: bool) -> str:
    kind = row.status.split()[0]
    time_s = f"{row.seconds_s:.0f} s" if row.seconds_s else ""
    why = f"<p>{_safe(row.why)}</p>" if row.why else ""
    return (
        f'<section class="step"><div class="head"><span class="status {kind}">'
        f"{MARKS[row.status]} {row.status}</span><b>{_safe(row.title)}</b>"
        f'<span class="dim">{_safe(row.name)} {time_s}</span></div>{why}'
        f"{_checks(row, is_cpu=is_cpu)}{_behind(row)}</section>"
    )


def _checks(row: Row, *, is_cpu: bool) -> str:
    if not row.checks:
        return ""
    of = " (CPU)" if is_cpu else ""
    lines = "".join(
        f'<tr><td>{_safe(one.what)}</td><td data-of="found{of}:">'
        f"{_mark('passed' if one.ok else 'failed')} {_safe(one.found)}</td>"
        f'<td data-of="wanted:">{_safe(one.wanted)}</td></tr>'
        for one in row.checks
    )
    return (f"<table><thead><tr><th>check</th><th>found{of}</th><th>wanted</th></tr></thead>"
            f"<tbody>{lines}</tbody></table>")  # fmt: skip


def _mark(status: str) -> str:
    return f'<span class="{status}">{MARKS[status]}</span>'


def _behind(row: Row) -> str:
    if not row.commands:
        return ""
    commands = "\n".join(_safe(one) for one in row.commands)
    logs = " · ".join(f'<a href="{_safe(one)}">{_safe(one)}</a>' for one in row.logs)
    return (
        f"<details><summary>commands and logs</summary><pre>{commands}</pre><p>{logs}</p></details>"
    )


def _meanwhile(points: Sequence[dict[str, float]], *, is_cpu: bool) -> str:
    if len(points) < 2:
        return '<p class="dim">Nothing was watched.</p>'
    of = "CPUs" if is_cpu else "card"
    curves = (("load_percent", f"load of the {of}, %", "load"),
              ("memory_mib", f"memory of the {'machine' if is_cpu else of} in use, MiB", "held"),
              ("power_w", "power, W", "load"), ("sm_mhz", "clock, MHz", "held"),
              ("celsius", "temperature, °C", "load"))  # fmt: skip
    drawn = "".join(_curve(points, *curve) for curve in curves)
    where = '<a href="telemetry.csv">telemetry.csv</a>'
    return f'{drawn}<p class="dim">Over the seconds since the start; all points: {where}</p>'


def _curve(points: Sequence[dict[str, float]], name: str, words: str, colour: str) -> str:
    """One quantity over the day; nothing where it was not told."""
    seen = [(one["at_s"], one[name]) for one in points if name in one]
    if len(seen) < 2:
        return ""
    first_s, last_s = seen[0][0], max(at_s for at_s, _ in seen)
    top = max(value for _, value in seen) or 1.0
    wide, high = WIDTH / max(last_s - first_s, 1e-9), (HEIGHT - 22) / top
    path = " ".join(f"{(at_s - first_s) * wide:.1f},{HEIGHT - 4 - value * high:.1f}"
                    for at_s, value in seen)  # fmt: skip
    label = f"{_safe(words)}, at most {top:g}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f'<line x1="0" y1="{HEIGHT - 4}" x2="{WIDTH}" y2="{HEIGHT - 4}" stroke="var(--line)"/>'
        f'<polyline points="{path}" fill="none" stroke="var(--{colour})" stroke-width="1.5"/>'
        f'<text x="0" y="11">{_safe(words)}: {top:,.0f} at most</text></svg>'
    )


def _safe(text: str) -> str:
    return html.escape(text)
