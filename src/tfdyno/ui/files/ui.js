"use strict";
(() => {
  const { t, at, say, fragment, token, fetched, el, svg, copy } = page;
  const form = at("controls");
  const DEFAULTS = { count: "1", offers: "no-spot" };
  const PANELS = ["step", "run", "ranking"];
  const FEW = 12;
  const shown = {};
  let all = false;

  // ---- settings, in the fragment as well ----
  const fields = () => [...form.elements].filter((one) => one.name);
  const settings = () => {
    const found = new URLSearchParams();
    for (const one of fields()) {
      const value = one.value.trim();
      if (value && value !== DEFAULTS[one.name]) found.set(one.name, value);
    }
    return found;
  };
  const address = () => `${location.origin}/${location.search}#${settings()}`;

  // ---- numbers, with three digits and a unit ----
  const digits = (value) => {
    if (!Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
    return value >= 1000 ? Math.round(+value.toPrecision(3)).toLocaleString("en")
      : String(+value.toFixed(Math.min(places, 12)));
  };
  const scaled = (value, units) => {
    const [size, name] = units.find(([least]) => value >= least) ?? units.at(-1);
    return `${digits(value / size)}\u00a0${name}`;
  };
  const seconds = (value) => scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
  const bytes = (value) => scaled(value, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]);
  const hours = (value) => value >= 72 ? `${digits(value / 24)}\u00a0days`
    : value >= 1 ? `${digits(value)}\u00a0h` : `${digits(value * 60)}\u00a0min`;
  const dollars = (value) => `$${value >= 10 ? digits(value)
    : value >= 0.1 ? value.toFixed(2) : +value.toPrecision(2)}`;
  const whole = (value) => value.toLocaleString("en");
  const range = (one, write) => say(t.to, { low: write(one.low), high: write(one.high) });
  const named = (name, count) => (count > 1 ? `${count}\u00a0×\u00a0` : "") + name;

  // ---- drawing ----
  const paint = (variable) => `var(--${variable})`;
  const fill = (element, variable, opacity = 1) => {
    element.style.fill = paint(variable);
    element.style.fillOpacity = opacity;
    return element;
  };
  const stroke = (element, variable, width = 1) => {
    element.style.stroke = paint(variable);
    element.style.strokeWidth = width;
    element.style.fill = "none";
    return element;
  };
  const tip = (element, text) => { element.append(svg("title", {}, text)); return element; };
  const picture = (id, label, width, height, children) => {
    const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, children);
    document.querySelector(`#${id} .plot`).replaceChildren(drawn);
    return drawn;
  };
  const widthOf = (id) => Math.max(280, Math.round(at(id).clientWidth || 600));

  // ---- one bar of parts, with its key ----
  const bar = (id, label, parts, total, limit, write) => {
    at(id).hidden = false;
    const width = widthOf(id);
    const end = Math.max(total, limit ?? 0) || 1;
    const drawn = [fill(svg("rect", { x: 0, y: 6, width, height: 26, rx: 3 }), "track")];
    let left = 0;
    for (const [name, colour, value] of parts) {
      const wide = (value / end) * width;
      const piece = svg("rect", { x: left, y: 6, width: Math.max(0, wide - (wide > 3 ? 1 : 0)), height: 26 });
      drawn.push(tip(fill(piece, colour), `${name}: ${write(value)}`));
      left += wide;
    }
    if (limit) {
      const x = Math.min(width - 1, (limit / end) * width);
      drawn.push(stroke(svg("line", { x1: x, x2: x, y1: 0, y2: 38 }), "ink", 2));
    }
    picture(id, label, width, 38, drawn);
    const key = parts.map(([name, colour, value]) => el("li", {},
      svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
        fill(svg("rect", { width: 10, height: 10, rx: 2 }), colour)), `${name} ${write(value)}`));
    const list = el("ul", { class: "key" }, key.flatMap((one) => [one, " \u2002"]));
    document.querySelector(`#${id} .plot`).append(list);
  };

  // ---- a plane with two logarithmic axes ----
  const plane = (id, xs, ys, words) => {
    const width = widthOf(id);
    const height = Math.round(Math.min(420, Math.max(260, width * 0.5)));
    const [left, right, top, bottom] = [52, 14, 14, 40];
    const span = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const rim = Math.max(Math.log10(high / low) * 0.06, 0.08);
      return [Math.log10(low) - rim, Math.log10(high) + rim];
    };
    const scale = ([low, high], from, to) => (value) =>
      from + ((Math.log10(value) - low) / (high - low)) * (to - from);
    const [xSpan, ySpan] = [span(xs), span(ys)];
    const x = scale(xSpan, left, width - right);
    const y = scale(ySpan, height - bottom, top);
    const ticks = ([low, high]) => {
      const steps = high - low < 1.2 ? [1, 2, 3, 5, 7] : high - low < 2.2 ? [1, 2, 5] : [1];
      const found = [];
      for (let power = Math.floor(low); power <= high; power += 1)
        for (const step of steps) {
          const value = step * 10 ** power;
          if (Math.log10(value) >= low && Math.log10(value) <= high) found.push(value);
        }
      return found;
    };
    const short = (value) => scaled(value, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]])
      .replace("\u00a0", "");
    const drawn = [];
    for (const value of ticks(xSpan)) {
      drawn.push(stroke(svg("line", { x1: x(value), x2: x(value), y1: top, y2: height - bottom }), "grid"));
      drawn.push(svg("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" }, short(value)));
    }
    for (const value of ticks(ySpan)) {
      drawn.push(stroke(svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value) }), "grid"));
      drawn.push(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
    }
    drawn.push(svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, words.x));
    drawn.push(svg("text", { x: 0, y: top - 2 }, words.y));
    return { width, height, x, y, left, right: width - right, top, bottom: height - bottom, drawn };
  };

  // ---- what is drawn of each answer ----
  const tile = (id, name, value, more) => {
    const old = at(id);
    const made = el("div", { id }, el("dt", {}, name), el("dd", {}, value, el("small", {}, more)));
    if (old) old.replaceWith(made); else at("tiles").append(made);
  };
  const PARTS = [
    ["part_weights", "c4", ["weights", "gradients", "optimizer"]], ["part_activations", "c1", ["activations"]],
    ["part_inputs", "c2", ["inputs"]], ["part_workspace", "c3", ["workspace"]],
    ["part_context", "c5", ["context", "allocator"]],
  ];
  const TERMS = [["compute", "c1"], ["memory", "c3"], ["launch", "c5"], ["communication", "c4"], ["input", "c2"]];
  const termName = (term) => t[term === "memory" ? "memory_term" : term] ?? term;

  const drawStep = ({ document: found, card }) => {
    const one = found.estimates[0];
    at("headline").textContent = say(t.headline, {
      count: one.replicas > 1 ? `${one.replicas} × ` : "", card: card.name, step: seconds(one.step_s.best) });
    const software = one.software ? ` ${one.software}.` : "";
    const fits = t[{ yes: "fits_yes", no: "fits_no" }[one.fits] ?? "fits_unsure"];
    tellPlain((one.fits === "yes" ? "" : `${fits}. `) + say(t.bound, { term: termName(one.bound_by), batch: whole(one.batch_size),
      precision: `${one.precision}, ${one.execution}` }) + software);
    at("ctx").replaceChildren(el("b", {}, found.trace.title), ` · ${found.trace.workload}`);
    tile("t-step", t.step, seconds(one.step_s.best), range(one.step_s, seconds));
    tile("t-rate", t.rate, digits(one.samples_per_s.best), range(one.samples_per_s, digits));
    const parts = PARTS.map(([name, colour, keys]) =>
      [t[name], colour, keys.reduce((sum, key) => sum + (one.memory_parts_bytes[key] ?? 0), 0)])
      .filter(([, , value]) => value > 0);
    const held = one.device_memory_bytes;
    const usable = bytes(one.usable_memory_bytes);
    bar("memory", say(t.figure_memory, { held: bytes(held.best), usable }), parts,
      parts.reduce((sum, [, , value]) => sum + value, 0), one.usable_memory_bytes, bytes);
    document.querySelector("#memory .note").classList.toggle("wrong", one.fits === "no");
    document.querySelector("#memory .note").textContent = say(t.held, { fits, held: bytes(held.best),
      low: bytes(held.low), high: bytes(held.high), usable })
      + (one.max_batch_size ? say(t.largest, { batch: whole(one.max_batch_size) }) : "") + ".";
    const terms = TERMS.map(([name, colour]) => [termName(name), colour, one.terms_s[name] ?? 0])
      .filter(([, , value]) => value > 0);
    const spent = terms.reduce((sum, [, , value]) => sum + value, 0);
    bar("split", say(t.figure_split, { parts: terms.map(([name, , value]) => `${name} ${seconds(value)}`).join(", ") }),
      terms, spent, null, seconds);
    drawRoofline(one, card);
    const notes = [...new Set([...one.warnings, ...found.notes])];
    at("notes").hidden = !notes.length;
    at("notelist").replaceChildren(...notes.map((text) => el("li", {}, text)));
  };

  const drawRoofline = (one, card) => {
    const points = (one.roofline ?? []).filter((point) =>
      point.intensity_flops_per_byte > 0 && point.rate_flops_per_s > 0);
    const roofs = card.roofs;
    at("roof").hidden = !points.length || !roofs.length;
    if (at("roof").hidden) return;
    const slope = card.memory_bytes_per_s;
    const ridges = roofs.map((roof) => roof.flops_per_s / slope);
    const xs = [...points.map((point) => point.intensity_flops_per_byte), ...ridges];
    const ys = [...points.map((point) => point.rate_flops_per_s), ...roofs.map((roof) => roof.flops_per_s)];
    const on = plane("roofline", xs, ys, { x: t.axis_intensity, y: t.axis_rate });
    const [x1, x2] = [Math.min(...xs), Math.max(...xs)];
    const top = Math.max(...roofs.map((roof) => roof.flops_per_s));
    const low = Math.max(x1, Math.min(...ys) / slope);
    on.drawn.push(stroke(svg("line", { x1: on.x(low), y1: on.y(low * slope),
      x2: on.x(top / slope), y2: on.y(top) }), "c5", 1.5));
    for (const roof of roofs) {
      on.drawn.push(stroke(svg("line", { x1: on.x(roof.flops_per_s / slope), y1: on.y(roof.flops_per_s),
        x2: on.right, y2: on.y(roof.flops_per_s) }), "c5", 1.5));
    }
    const most = Math.max(...points.map((point) => point.time_s));
    for (const point of [...points].sort((a, b) => b.time_s - a.time_s)) {
      const radius = Math.max(2.5, 22 * Math.sqrt(point.time_s / most));
      const colour = ["convolution", "gemm"].includes(point.kind) ? "c1" : "c2";
      const mark = stroke(svg("circle", { cx: on.x(point.intensity_flops_per_byte),
        cy: on.y(point.rate_flops_per_s), r: radius }), colour, 1.2);
      fill(mark, colour, 0.25);
      on.drawn.push(tip(mark, `${point.label}, ${point.kind}: ${seconds(point.time_s)}`));
    }
    for (const roof of roofs) on.drawn.push(svg("text", { x: on.right, y: on.y(roof.flops_per_s) - 5,
      "text-anchor": "end" }, roof.name));
    picture("roofline", say(t.figure_roofline, { count: points.length, card: card.name }), on.width, on.height, on.drawn);
  };

  const drawRun = ({ document: found }) => {
    const rows = found.ranking.filter((row) => row.count === +(form.elements.count.value || 1));
    const priced = rows.filter((row) => row.cost_usd !== null && row.verdict === "feasible");
    const one = priced[0] ?? rows.find((row) => row.verdict !== "cannot run") ?? rows[0];
    if (!one) return;
    shown.mine = one;
    tile("t-hours", t.hours, hours(one.hours), range(one.hours_range, hours));
    tile("t-cost", t.cost, one.cost_usd === null ? "–" : dollars(one.cost_usd),
      one.cost_usd === null ? t.no_price : range(one.cost_usd_range, dollars));
    const lines = [say(t.run_of, { samples: whole(found.run.samples) })];
    if (one.usd_per_h) lines.push(say(t.at_price, { price: digits(one.usd_per_h), offer: one.provider }));
    at("t-hours").querySelector("dd").append(el("small", {}, lines[0]));
    if (lines[1]) at("t-cost").querySelector("dd").append(el("small", {}, lines[1]));
    if (shown.ranking) drawPareto(shown.ranking.document);
  };

  // The step may be known where the run is not: nobody offers so many of the card.
  const noRun = (why) => {
    delete shown.run;
    shown.mine = null;
    const told = status.step ? why : form.elements.usd_per_h.value ? why : t.no_price;
    tile("t-hours", t.hours, "–", "");
    tile("t-cost", t.cost, "–", told);
    at("t-cost").title = why;
    if (!status.step) status.run = "";
  };

  const choose = (row) => {
    form.elements.gpu.value = row.gpu;
    setCount(row.count);
    form.elements.usd_per_h.value = "";
    changed(0);
    at("headline").scrollIntoView({ block: "start" });
  };
  const isMine = (row) => row.gpu === form.elements.gpu.value && row.count === +form.elements.count.value;

  const drawRanking = (given) => {
    const found = given.document;
    at("choices").hidden = false;
    at("advice").textContent = found.ranking.length ? found.headline : t.no_choice;
    const good = found.ranking.filter((row) => row.verdict === "feasible");
    const rows = good.length ? good : found.ranking;
    const head = ["card", "offer", "hours_short", "cost_short", "step", "memory_short"];
    document.querySelector("#ranking thead").replaceChildren(el("tr", {}, head.map((name, column) =>
      el("th", { scope: "col", class: column > 1 ? "n" : null }, t[name]))));
    document.querySelector("#ranking tbody").replaceChildren(...(all ? rows : rows.slice(0, FEW)).map((row) =>
      el("tr", { class: isMine(row) ? "mine" : null },
        el("th", { scope: "row" }, el("button", { type: "button", onclick: () => choose(row) },
          named(row.gpu_name, row.count))),
        el("td", {}, row.provider ? `${row.provider}${row.spot ? `, ${t.spot}` : ""}` : "–"),
        el("td", { class: "n" }, hours(row.hours)),
        el("td", { class: "n", title: row.tied_with_first ? t.tie : null }, row.cost_usd === null ? "–"
          : `${row.tied_with_first ? "≈ " : ""}${dollars(row.cost_usd)}`),
        el("td", { class: "n" }, seconds(row.estimate.step_s.best)),
        el("td", { class: "n" }, row.verdict === "feasible" ? bytes(row.estimate.device_memory_bytes.best)
          : row.verdict))));
    at("more").hidden = rows.length <= FEW;
    at("more").textContent = say(all ? t.show_few : t.show_all, { count: all ? FEW : rows.length });
    drawPareto(found);
  };

  const drawPareto = (found) => {
    const rows = found.ranking.filter((row) => row.verdict === "feasible" && row.cost_usd > 0);
    const mine = shown.mine?.cost_usd > 0 ? shown.mine : null;
    at("pareto").hidden = !rows.length;
    if (!rows.length) return;
    const marked = mine ? [...rows, mine] : rows;
    const on = plane("pareto", marked.map((row) => row.hours), marked.map((row) => row.cost_usd),
      { x: t.axis_hours, y: t.axis_cost });
    const front = rows.filter((row) => row.pareto).sort((a, b) => a.hours - b.hours);
    on.drawn.push(stroke(svg("polyline", { points: front.map((row) =>
      `${on.x(row.hours)},${on.y(row.cost_usd)}`).join(" ") }), "c1", 1.5));
    for (const row of rows) {
      const mark = svg("circle", { cx: on.x(row.hours), cy: on.y(row.cost_usd), r: row.pareto ? 5 : 3.5,
        onclick: () => choose(row) });
      mark.style.cursor = "pointer";
      on.drawn.push(tip(fill(mark, row.pareto ? "c1" : "c5", row.pareto ? 1 : 0.55),
        `${named(row.gpu_name, row.count)}, ${row.provider}: ${hours(row.hours)}, ${dollars(row.cost_usd)}`));
    }
    let last = -Infinity;
    for (const row of front) {
      const x = on.x(row.hours);
      if (x - last < 90 || (mine && Math.abs(x - on.x(mine.hours)) < 90)) continue;
      last = x;
      const atEnd = x > on.right - 110;
      on.drawn.push(svg("text", { x: atEnd ? x - 8 : x + 8, y: on.y(row.cost_usd) - 7,
        "text-anchor": atEnd ? "end" : "start" }, named(row.gpu_name, row.count)));
    }
    if (mine) {
      const [x, y] = [on.x(mine.hours), on.y(mine.cost_usd)];
      const [low, high] = [on.x(mine.hours_range.low), on.x(mine.hours_range.high)];
      on.drawn.push(stroke(svg("line", { x1: Math.max(on.left, low), x2: Math.min(on.right, high), y1: y, y2: y }), "c2", 2));
      on.drawn.push(tip(fill(svg("circle", { cx: x, cy: y, r: 7 }), "c2"), t.chosen));
      const atEnd = x > on.right - 130;
      on.drawn.push(svg("text", { class: "strong", x: atEnd ? x - 12 : x + 12, y: y - 8,
        "text-anchor": atEnd ? "end" : "start" }, t.chosen));
    }
    picture("pareto", say(t.figure_pareto, { count: rows.length }), on.width, on.height, on.drawn);
  };
  const DRAW = { step: drawStep, run: drawRun, ranking: drawRanking };

  // ---- commands, each with a button that copies it ----
  const drawCommands = () => {
    at("commands").replaceChildren(...PANELS.filter((name) => shown[name]).map((name) => {
      const text = shown[name].command;
      const button = el("button", { type: "button", class: "plain-button",
        "aria-label": `${t.copy}: ${t[`cmd_${name}`]}` }, t.copy);
      button.addEventListener("click", () => copy(button, text, t.copied));
      return el("div", {}, el("dt", {}, el("code", { id: `cmd-${name}` }, text)),
        el("dd", {}, t[`cmd_${name}`], button));
    }));
  };

  // ---- asking: the newest question counts, what came before is given up ----
  const status = { step: "", run: "", ranking: "" };
  let plain = "";
  const tellPlain = (text) => { plain = text; showStatus(); };
  const showStatus = () => {
    const wrong = status.step || status.run || status.ranking;
    const told = at("told");
    const text = wrong || plain || t.asking;
    if (told.textContent !== text) told.textContent = text;
    told.classList.toggle("wrong", Boolean(wrong) && !wrong.startsWith(tracingWords));
  };
  const tracingWords = t.tracing.split("{")[0];
  const AREAS = { step: ["memory", "split", "roof", "t-step", "t-rate"], run: ["t-hours", "t-cost"], ranking: ["choices"] };
  const late = (name, is) => AREAS[name].forEach((id) => at(id)?.classList.toggle("late", is));
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  let current = new AbortController();

  const ask = async (name, query, { signal }) => {
    late(name, true);
    try {
      for (;;) {
        const { status: code, body } = await fetched(`/api/${name}?${query}`, signal);
        if (code !== 202) {
          status[name] = body.error ?? "";
          if (code === 200) {
            shown[name] = body;
            DRAW[name](body);
          } else if (name === "run") noRun(body.error);
          break;
        }
        status[name] = say(t.tracing, { stage: body.tracing });
        showStatus();
        await pause(400);
        if (signal.aborted) return;
      }
    } catch (wrong) {
      if (signal.aborted) return;
      status[name] = wrong instanceof TypeError ? t.gone : String(wrong);
    }
    late(name, false);
    showStatus();
    drawCommands();
    document.body.dataset.ready = PANELS.every((one) => !AREAS[one].some((id) => at(id)?.classList.contains("late")));
  };
  const update = () => {
    current.abort();
    current = new AbortController();
    const query = settings();
    history.replaceState(null, "", `#${query}`);
    document.body.dataset.ready = "false";
    PANELS.forEach((name) => ask(name, query, current));
  };
  let waiting;
  const changed = (ms) => { clearTimeout(waiting); waiting = setTimeout(update, ms); };

  // ---- controls ----
  const options = (name, rows) =>
    form.elements[name].replaceChildren(...rows.map(([value, text]) => el("option", { value }, text)));
  const setCount = (count) => {
    const select = form.elements.count;
    if (![...select.options].some((one) => one.value === String(count)))
      select.append(el("option", { value: count }, count));
    select.value = count;
  };
  const slide = () => {
    const batch = +form.elements.batch_size.value;
    if (batch >= 1) at("slider").value = Math.round(Math.log2(batch));
    at("slider").setAttribute("aria-valuetext", whole(2 ** at("slider").value));
  };
  const put = (values) => {
    for (const one of fields()) {
      const value = values.get(one.name) ?? DEFAULTS[one.name] ?? "";
      if (one.name === "count") setCount(value); else one.value = value;
    }
    slide();
  };
  const begin = async () => {
    if (!token) { status.step = t.no_token; showStatus(); return; }
    const { status: code, body: state } = await fetched("/api/state");
    if (code !== 200) { status.step = state.error; showStatus(); return; }
    at("workloads").replaceChildren(...state.workloads.map((name) => el("option", { value: name })));
    const groups = new Map();
    for (const card of state.gpus) groups.set(card.group, [...(groups.get(card.group) ?? []), card]);
    form.elements.gpu.replaceChildren(...[...groups].map(([label, cards]) =>
      el("optgroup", { label }, cards.map((card) => el("option", { value: card.slug }, card.name)))));
    options("count", state.counts.map((count) => [count, count]));
    options("precision", [["", t.usual_precision], ...state.precisions.map((name) => [name, name])]);
    options("execution", [["", t.usual_execution], ...state.executions.map((name) => [name, name])]);
    options("offers", ["no-spot", "spot", "every"].map((name) => [name, t[name]]));
    const first = () => new URLSearchParams({ workload: state.workload, gpu: state.gpu });
    const over = (given) => {
      const found = first();
      for (const [name, value] of given) found.set(name, value);
      return found;
    };
    put(over(fragment));
    form.addEventListener("input", (event) => {
      if (event.target.id === "slider") {
        form.elements.batch_size.value = 2 ** event.target.value;
        slide();
      } else if (event.target.name === "batch_size") slide();
      changed(event.target.type === "text" || event.target.name === "workload" ? 500 : 40);
    });
    form.addEventListener("submit", (event) => { event.preventDefault(); changed(0); });
    form.addEventListener("reset", (event) => { event.preventDefault(); put(first()); changed(0); });
    addEventListener("hashchange", () => {
      const given = new URLSearchParams(location.hash.slice(1));
      given.delete("token");
      if (String(given) !== String(settings())) { put(over(given)); changed(0); }
    });
    at("more").addEventListener("click", () => { all = !all; drawRanking(shown.ranking); });
    at("share").addEventListener("click", () => copy(at("share"), address(), t.shared));
    let wide = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === wide) return;
      wide = innerWidth;
      PANELS.forEach((name) => shown[name] && DRAW[name](shown[name]));
    });
    update();
  };
  begin().catch(() => { status.step = t.gone; showStatus(); });
})();
