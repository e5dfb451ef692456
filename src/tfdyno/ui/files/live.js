"use strict";
(() => {
  const { t, at, say, token, fetched, el, svg } = page;
  const { digits, seconds, bytes, hours, whole, fill, stroke, tip, picture, widthOf } = draw;
  const LIST_MS = 3000;
  const EVENTS_MS = 1000;
  const MOST_POINTS = 1500;
  const runs = new Map();
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  const tell = (text, wrong) => {
    if (at("told").textContent !== text) at("told").textContent = text;
    at("told").classList.toggle("wrong", Boolean(wrong));
  };
  const left = (value) => value >= 60 ? hours(value / 3600) : seconds(value);

  // ---- one figure: lines and marks over two plain axes ----
  const steps = (low, high) => {
    const size = 10 ** Math.floor(Math.log10((high - low) / 4));
    const each = [1, 2, 5, 10].map((one) => one * size).find((one) => (high - low) / one <= 5);
    const found = [];
    for (let value = Math.ceil(low / each) * each; value <= high + each * 1e-9; value += each) found.push(value);
    return found;
  };
  const graph = (id, label, series, write, axis) => {
    const all = series.flatMap((one) => one.points);
    at(id).hidden = !all.length;
    if (!all.length) return;
    const width = widthOf(id);
    const height = 200;
    const [margin, right, top, bottom] = [58, 10, 10, 30];
    let [x1, x2] = [Math.min(...all.map(([x]) => x)), Math.max(...all.map(([x]) => x))];
    let [y1, y2] = [Math.min(...all.map(([, y]) => y)), Math.max(...all.map(([, y]) => y))];
    if (x1 === x2) [x1, x2] = [x1 - 1, x2 + 1];
    const rim = (y2 - y1) * 0.06 || Math.abs(y1) * 0.1 || 1;
    [y1, y2] = [Math.max(y1 >= 0 ? 0 : -Infinity, y1 - rim), y2 + rim];
    const x = (value) => margin + ((value - x1) / (x2 - x1)) * (width - margin - right);
    const y = (value) => height - bottom - ((value - y1) / (y2 - y1)) * (height - bottom - top);
    const drawn = [];
    for (const value of steps(y1, y2)) {
      drawn.push(stroke(svg("line", { x1: margin, x2: width - right, y1: y(value), y2: y(value) }), "grid"));
      drawn.push(svg("text", { x: margin - 6, y: y(value) + 4, "text-anchor": "end" }, write(value)));
    }
    for (const value of steps(x1, x2)) if (Number.isInteger(value))
      drawn.push(svg("text", { x: Math.min(x(value), width - 20), y: height - bottom + 16, "text-anchor": "middle" }, whole(value)));
    drawn.push(svg("text", { x: width - right, y: height - 2, "text-anchor": "end" }, axis));
    for (const { points, colour, dots, name } of series) {
      if (!dots) drawn.push(stroke(svg("polyline", { points: points.map((one) => `${x(one[0])},${y(one[1])}`).join(" ") }), colour, 2));
      if (dots || points.length < 3) for (const [px, py] of points)
        drawn.push(tip(fill(svg("circle", { cx: x(px), cy: y(py), r: 3 }), colour), `${name}: ${write(py)}`));
    }
    picture(id, label, width, height, drawn);
    const key = series.filter((one) => one.points.length).map(({ name, colour }) => el("li", {},
      svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
        fill(svg("rect", { width: 10, height: 10, rx: 2 }), colour)), name));
    if (key.length > 1) document.querySelector(`#${id} .plot`).append(el("ul", { class: "key" }, key.flatMap((one) => [one, " \u2002"])));
  };

  // ---- a training: every event is one moment ----
  const place = (event) => (event.epoch - 1) * (event.steps || 0) + event.step;
  const thin = (points) => points.length <= MOST_POINTS ? points : points.filter((_, number) => (points.length - 1 - number) % 2 === 0);
  const take = (run, events) => {
    for (const event of events) {
      if (event.event === "begin") {
        run.begin = event;
        continue;
      }
      const step = place(event);
      const told = event.metrics ?? event;
      if (typeof told.loss === "number") run.loss.push([step, told.loss]);
      if (event.event === "epoch" && typeof told.val_loss === "number") run.validation.push([step, told.val_loss]);
      const rate = event.samples_per_s / run.begin?.samples_per_step;
      if (rate > 0) run.pace.push([step, 1 / rate]);
      if (event.beside_s !== undefined && rate > 0)
        run.beside = { seconds: event.beside_s, share: event.beside_s / (event.beside_s + event.step / rate) };
      if (event.load?.cards?.length) run.cards = event.load.cards;
      run.load = event.load ?? run.load;
      run.now = { ...(run.now ?? {}), ...event };
    }
    for (const name of ["loss", "pace"]) run[name] = thin(run[name]);
  };
  const tiles = (run) => {
    const now = run.now;
    if (!now) return [[t.live_step, "–", run.row.state === "running" ? t.live_waits : ""]];
    const loss = run.loss.at(-1)?.[1];
    const found = [[t.live_step, now.steps ? `${whole(now.step)} / ${whole(now.steps)}` : whole(now.step),
      say(t.live_epoch, { epoch: now.epoch, epochs: now.epochs })]];
    if (loss !== undefined) found.push([t.live_loss, digits(loss), ""]);
    const pace = run.pace.at(-1)?.[1];
    if (pace) found.push([t.step, seconds(pace), now.samples_per_s ? `${digits(now.samples_per_s)} ${t.live_rate}` : ""]);
    if (run.row.state === "running" && now.eta_s !== undefined) found.push([t.live_left, left(now.eta_s), ""]);
    const load = (run.cards ?? []).map((card) => [say(t.live_card, { index: card.index }),
      card.utilisation_ratio == null ? "–" : `${Math.round(card.utilisation_ratio * 100)} %`,
      [card.memory_bytes && bytes(card.memory_bytes), card.power_w && `${Math.round(card.power_w)} W`].filter(Boolean).join(", ")]);
    if (!load.length && run.load?.cpu_ratio !== undefined)
      load.push([t.live_cpu, `${Math.round(run.load.cpu_ratio * 100)} %`, run.load.memory_bytes ? bytes(run.load.memory_bytes) : ""]);
    return [...found, ...load];
  };
  const drawTraining = (run) => {
    const id = run.row.id;
    at(`tiles-${id}`).replaceChildren(...tiles(run).map(([name, value, more]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, more)))));
    graph(`a-${id}`, say(t.live_figure, { what: t.live_loss, count: run.loss.length }), [
      { name: t.live_loss, colour: "c1", points: run.loss },
      { name: t.live_validation, colour: "c2", points: run.validation, dots: true }], digits, t.live_steps);
    graph(`b-${id}`, say(t.live_figure, { what: t.step, count: run.pace.length }), [
      { name: t.step, colour: "c3", points: run.pace }], seconds, t.live_steps);
    at(`note-${id}`).textContent = run.beside
      ? say(t.live_beside, { seconds: seconds(run.beside.seconds), share: digits(100 * run.beside.share) }) : "";
  };

  // ---- a tuning and a bench: what ended so far ----
  const drawTuning = (run, { trials }) => {
    const id = run.row.id;
    const good = trials.filter((one) => one.status === "measured");
    const best = good.reduce((most, one) => !most || one.samples_per_s > most.samples_per_s ? one : most, null);
    const changes = best ? Object.entries(best.changes).map(([name, value]) => `${name} = ${value}`).join(", ") : "";
    at(`tiles-${id}`).replaceChildren(...[[t.live_trials, whole(trials.length), ""],
      [t.live_best, best ? digits(best.samples_per_s) : "–", [t.live_rate, changes].filter(Boolean).join("; ")]].map(([name, value, more]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, more)))));
    graph(`a-${id}`, say(t.live_figure, { what: t.live_rate, count: good.length }),
      [{ name: t.live_rate, colour: "c1", dots: true, points: good.map((one) => [one.number, one.samples_per_s]) }], digits, t.live_trials);
  };
  const drawBench = (run, { runs: done }) => {
    const id = run.row.id;
    const last = done.at(-1);
    at(`tiles-${id}`).replaceChildren(...[[t.live_runs, whole(done.length), ""],
      [t.step, last ? seconds(last.step_s) : "–", ""]].map(([name, value, more]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, more)))));
    graph(`a-${id}`, say(t.live_figure, { what: t.step, count: done.length }),
      [{ name: t.step, colour: "c3", dots: true, points: done.map((one, number) => [number + 1, one.step_s]) }], seconds, t.live_runs);
  };

  const follow = async (run) => {
    const { status, body } = await fetched(`/api/events?id=${run.row.id}&from=${run.next}`);
    if (status === 0) throw new Error(body.error);
    if (status !== 200) return false;
    if (run.row.kind === "tune") drawTuning(run, body);
    else if (run.row.kind === "bench") drawBench(run, body);
    else {
      if (body.next < run.next) Object.assign(run, fresh(run.row));
      const more = body.next > run.next;
      take(run, body.events);
      run.next = body.next;
      drawTraining(run);
      return more;
    }
    return false;
  };
  const fresh = (row) => ({ row, next: 0, loss: [], validation: [], pace: [], beside: null, begin: null, now: null });
  const DRAWN = { train: t.live_loss, tune: t.live_rate, bench: t.step };
  const section = ({ id, kind }) => el("section", { id: `run-${id}`, class: "run" },
    el("h2", { id: `title-${id}` }), el("p", { class: "lead", id: `lead-${id}` }),
    el("dl", { class: "tiles", id: `tiles-${id}` }),
    el("figure", { id: `a-${id}`, hidden: true }, el("figcaption", {}, DRAWN[kind]), el("div", { class: "plot" })),
    el("figure", { id: `b-${id}`, hidden: true }, el("figcaption", {}, t.step), el("div", { class: "plot" })),
    el("p", { class: "note", id: `note-${id}` }));
  const KINDS = { train: t.live_train, tune: t.live_tune, bench: t.live_bench };
  const STATES = { running: t.live_running, lost: t.live_lost, finished: t.live_finished,
    stopped: t.live_stopped, failed: t.live_failed };
  const list = async () => {
    const { status, body } = await fetched("/api/live");
    if (status !== 200) throw new Error(body.error);
    at("ctx").textContent = body.folder;
    for (const id of [...runs.keys()]) if (!body.rows.some((row) => row.id === id)) {
      runs.delete(id);
      at(`run-${id}`).remove();
    }
    for (const row of body.rows) {
      if (!runs.has(row.id)) {
        runs.set(row.id, fresh(row));
        at("answer").append(section(row));
      }
      runs.get(row.id).row = row;
      at(`title-${row.id}`).textContent = say(t.live_of, { kind: KINDS[row.kind], title: row.title });
      at(`lead-${row.id}`).textContent = [STATES[row.state], row.place,
        row.since && say(t.live_since, { when: row.since })].filter(Boolean).join(" · ");
      at(`lead-${row.id}`).classList.toggle("wrong", row.state === "lost" || row.state === "failed");
    }
    tell(body.rows.length ? say(t.live_found, { count: body.rows.length }) : t.live_none);
    at("notes").hidden = !body.notes.length;
    at("notelist").replaceChildren(...body.notes.map((text) => el("li", {}, text)));
  };

  const watch = async () => {
    if (!token) { tell(t.no_token, true); return; }
    let listed = -Infinity;
    for (;;) {
      if (!document.hidden) {
        try {
          if (performance.now() - listed >= LIST_MS) { await list(); listed = performance.now(); }
          for (const run of runs.values()) {
            const isNew = run.row.state === "running" || run.seen !== run.row.state;
            const more = isNew && await follow(run);  // a record comes in portions
            run.seen = more ? null : run.row.state;
          }
          document.body.dataset.ready = "true";
        } catch (wrong) { tell(wrong.message, true); listed = -Infinity; }
      }
      await pause(EVENTS_MS);
    }
  };
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    for (const run of runs.values()) if (run.now) drawTraining(run);
  });
  watch();
})();
