"use strict";
(() => {
  const { t, at, say, fragment, token, fetched, el, svg, copy } = page;
  const { digits, seconds, bytes, hours, dollars, whole, range, named } = draw;
  const { fill, stroke, tip, picture, bar, plane } = draw;
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
    const rows = found.ranking.filter((row) => isWhole(row) && row.count === +(form.elements.count.value || 1));
    const priced = rows.filter((row) => row.cost_usd !== null && row.verdict === "feasible");
    const one = priced[0] ?? rows.find((row) => row.verdict !== "cannot run") ?? rows[0];
    if (!one) { noRun({ code: "no_offer" }); return; }
    shown.mine = one;
    tile("t-hours", t.hours, hours(one.hours), range(one.hours_range, hours));
    tile("t-cost", t.cost, one.cost_usd === null ? "–" : dollars(one.cost_usd),
      one.cost_usd === null ? t.no_price : range(one.cost_usd_range, dollars));
    const lines = [say(t.run_of, { samples: whole(found.run.samples) })];
    if (one.usd_per_h) lines.push(say(t.at_price, { price: dollars(one.usd_per_h), offer: one.provider }));
    at("t-hours").querySelector("dd").append(el("small", {}, lines[0]));
    if (lines[1]) at("t-cost").querySelector("dd").append(el("small", {}, lines[1]));
    if (shown.ranking) drawPareto(shown.ranking.document);
  };

  // ---- what is left of a figure whose question was refused: nothing ----
  const noStep = () => {
    for (const id of ["memory", "split", "roof", "notes"]) at(id).hidden = true;
    tile("t-step", t.step, "–", "");
    tile("t-rate", t.rate, "–", "");
    at("headline").textContent = t.opening;
    at("ctx").replaceChildren();
    plain = "";
  };
  // The step may be known where the run is not: nobody offers so many of the card.
  const noRun = ({ code }) => {
    const why = code === "no_offer" ? t.no_price : "";
    if (why) status.run = "";
    shown.mine = null;
    tile("t-hours", t.hours, "–", "");
    tile("t-cost", t.cost, "–", why);
    if (shown.ranking) drawPareto(shown.ranking.document);
  };
  const noRanking = () => { at("choices").hidden = true; };
  const CLEAR = { step: noStep, run: noRun, ranking: noRanking };

  // ---- choosing another card; a share of one cannot be set here ----
  const isWhole = (row) => row.gpu_fraction >= 1;
  const choose = (row) => {
    form.elements.gpu.value = row.gpu;
    setCount(row.count);
    form.elements.usd_per_h.value = "";
    changed(0);
    at("headline").scrollIntoView({ block: "start" });
  };
  const isMine = (row) => isWhole(row) && row.gpu === form.elements.gpu.value
    && row.count === +form.elements.count.value;
  const title = (row) => isWhole(row) ? named(row.gpu_name, row.count)
    : say(t.share_of, { share: digits(row.gpu_fraction), card: row.gpu_name });

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
        el("th", { scope: "row" }, isWhole(row)
          ? el("button", { type: "button", onclick: () => choose(row) }, title(row)) : title(row)),
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
        onclick: () => isWhole(row) && choose(row) });
      if (isWhole(row)) mark.style.cursor = "pointer";
      on.drawn.push(tip(fill(mark, row.pareto ? "c1" : "c5", row.pareto ? 1 : 0.55),
        `${title(row)}, ${row.provider}: ${hours(row.hours)}, ${dollars(row.cost_usd)}`));
    }
    let last = -Infinity;
    for (const row of front) {
      const x = on.x(row.hours);
      if (x - last < 90 || (mine && Math.abs(x - on.x(mine.hours)) < 90)) continue;
      last = x;
      const atEnd = x > on.right - 110;
      on.drawn.push(svg("text", { x: atEnd ? x - 8 : x + 8, y: on.y(row.cost_usd) - 7,
        "text-anchor": atEnd ? "end" : "start" }, title(row)));
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
  let written = "";
  const drawCommands = () => {
    const names = PANELS.filter((name) => shown[name]);
    const all = names.map((name) => shown[name].command).join("\n");
    at("next").hidden = !names.length;
    if (all === written) return;  // a button that was pressed keeps its focus
    written = all;
    at("commands").replaceChildren(...names.map((name) => command(name, shown[name].command)));
  };
  const command = (name, text) => {
    const button = el("button", { type: "button", class: "plain-button",
      "aria-label": `${t.copy}: ${t[`cmd_${name}`]}` }, t.copy);
    button.addEventListener("click", () => copy(button, text, t.copied));
    return el("div", {}, el("dt", {}, el("code", { id: `cmd-${name}` }, text)),
      el("dd", {}, t[`cmd_${name}`], button));
  };

  // ---- the settings as a recipe or steps of a project: the browser keeps them, nobody else ----
  const LEFT_OUT = { gpu: t.gpu, samples: t.samples, usd_per_h: t.price, offers: t.offers };
  const SAVED = ["recipe", "project"];
  const files = {};
  const showFile = (name, is) => {
    at(name).hidden = !is;
    at(`as-${name}`).setAttribute("aria-expanded", is);
  };
  const askFile = async (name) => {
    const { signal } = current;
    const { status: code, body } = await fetched(`/api/${name}?${settings()}`, signal);
    if (signal.aborted) return;
    const { commands = {}, toml = "", left_out = [] } = body;
    at(`${name}-told`).classList.toggle("wrong", code !== 200);
    const left = left_out.map((one) => LEFT_OUT[one]).join(", ");
    at(`${name}-told`).textContent = body.error ?? say(t[`${name}_lead`], { left });
    for (const part of ["toml", "download", "commands"]) at(`${name}-${part}`).hidden = code !== 200;
    files[name] = body;
    at(`${name}-toml`).textContent = toml;
    at(`${name}-commands`).replaceChildren(
      ...Object.entries(commands).map(([key, line]) => command(key, line)));
    showFile(name, true);
  };
  const download = (name) => {
    const url = URL.createObjectURL(new Blob([files[name].toml], { type: "application/toml" }));
    el("a", { href: url, download: files[name].file }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
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

  const pending = new Set();
  const answered = (name, code, body) => {
    status[name] = body.error ?? "";
    if (code === 200) {
      shown[name] = body;
      DRAW[name](body);
    } else {
      delete shown[name];
      CLEAR[name](body);
    }
    pending.delete(name);
    late(name, false);
    showStatus();
    drawCommands();
    document.body.dataset.ready = !pending.size;
  };
  const ask = async (name, query, { signal }) => {
    pending.add(name);
    late(name, true);
    while (!signal.aborted) {
      const { status: code, body } = await fetched(`/api/${name}?${query}`, signal);
      if (signal.aborted) return;
      if (code !== 202) { answered(name, code, body); return; }
      status[name] = say(t.tracing, { stage: body.tracing });
      showStatus();
      await pause(400);
    }
  };
  const update = () => {
    current.abort();
    current = new AbortController();
    const query = settings();
    history.replaceState(null, "", `#${query}`);
    document.body.dataset.ready = "false";
    SAVED.forEach((name) => showFile(name, false));
    PANELS.forEach((name) => ask(name, query, current).catch((wrong) => {
      if (wrong.name !== "AbortError") answered(name, 0, { error: String(wrong) });
    }));
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
    for (const name of SAVED) {
      at(`as-${name}`).addEventListener("click", () => at(name).hidden
        ? askFile(name).catch(() => {}) : showFile(name, false));
      at(`${name}-download`).addEventListener("click", () => download(name));
    }
    at("share").addEventListener("click", () => copy(at("share"), address(), t.shared));
    let wide = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === wide) return;
      wide = innerWidth;
      PANELS.forEach((name) => shown[name] && DRAW[name](shown[name]));
    });
    update();
  };
  begin();
})();
