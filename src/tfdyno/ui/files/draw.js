"use strict";
/* Numbers with their units, and what figures are drawn of. */
const draw = (() => {
  const { t, at, say, el, svg } = page;

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
  return { digits, scaled, seconds, bytes, hours, dollars, whole, range, named,
    fill, stroke, tip, picture, widthOf, bar, plane };
})();
