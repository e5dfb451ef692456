"use strict";
(() => {
  const { t, at, say, fragment, token, fetched, el } = page;
  const form = at("filter");
  let rows = [];
  let chosen = [fragment.get("before"), fragment.get("after")].filter(Boolean);

  const tell = (text, wrong) => {
    at("told").textContent = text;
    at("told").classList.toggle("wrong", Boolean(wrong));
  };
  const tellFound = () => tell(rows.length ? say(t.found, { count: rows.length }) : t.none_found);
  const remember = () => {
    const kept = new URLSearchParams();
    for (const name of ["text", "kind"]) if (form.elements[name].value) kept.set(name, form.elements[name].value);
    if (chosen.length === 2) { kept.set("before", chosen[0]); kept.set("after", chosen[1]); }
    history.replaceState(null, "", `#${kept}`);
  };

  const choose = (id, is) => {
    chosen = chosen.filter((one) => one !== id);
    if (is) chosen = [...chosen, id].slice(-2);
    show();
    compare();
  };
  const show = () => {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = form.elements.kind.value;
    const wanted = rows.filter((row) => {
      const text = [row.place, row.title, row.answer, row.kind_words].join(" ").toLowerCase();
      return (!kind || row.kind === kind) && words.every((word) => text.includes(word));
    });
    at("count").textContent = wanted.length === rows.length ? "" : say(t.shown_of, { shown: wanted.length, all: rows.length });
    const focused = document.activeElement?.dataset?.id;
    document.querySelector("#results tbody").replaceChildren(...wanted.map((row) => {
      const place = chosen.indexOf(row.id);
      const box = el("input", { type: "checkbox", "data-id": row.id,
        "aria-label": say(t.compare_this, { place: row.place }) });
      box.checked = place >= 0;
      box.addEventListener("change", () => choose(row.id, box.checked));
      return el("tr", { class: place >= 0 ? "mine" : null },
        el("td", {}, box),
        el("th", { scope: "row" }, row.title || row.place, row.title ? el("small", {}, row.place) : null),
        el("td", {}, row.kind_words, el("small", {}, row.when)),
        el("td", {}, row.answer, ...row.figures.map((one) => el("small", {}, one))));
    }));
    if (focused) document.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
    remember();
  };
  let current = new AbortController();
  const compare = async () => {
    current.abort();
    current = new AbortController();
    const { signal } = current;
    at("difference").hidden = true;
    if (chosen.length !== 2) return;
    const asked = new URLSearchParams({ before: chosen[0], after: chosen[1] });
    const { status, body } = await fetched(`/api/difference?${asked}`, signal).catch(() => ({}));
    if (signal.aborted) return;
    if (status !== 200) { tell(body.error, true); return; }
    tellFound();
    at("difference").hidden = false;
    const [before, after] = chosen.map((id) => rows.find((row) => row.id === id)?.place ?? "");
    at("sides").textContent = say(t.from_to, { before, after });
    at("nothing").hidden = body.rows.length > 0;
    document.querySelector("#gained thead").replaceChildren(el("tr", {},
      [t.figure, t.before, t.after, t.gained].map((name) => el("th", { scope: "col" }, name))));
    document.querySelector("#gained tbody").replaceChildren(...body.rows.map((row) => el("tr", {},
      el("th", { scope: "row" }, row.figure), el("td", {}, row.before), el("td", {}, row.after),
      el("td", {}, row.words))));
  };

  const load = async () => {
    if (!token) { tell(t.no_token, true); return; }
    tell(t.reading);
    const { status, body } = await fetched("/api/results");
    if (status !== 200) { tell(body.error, true); return; }
    rows = body.rows;
    chosen = chosen.filter((id) => rows.some((row) => row.id === id));
    at("ctx").textContent = body.folder;
    tellFound();
    const kinds = new Map(rows.map((row) => [row.kind, row.kind_words]));
    const kept = form.elements.kind.value;
    form.elements.kind.replaceChildren(el("option", { value: "" }, t.all_kinds),
      ...[...kinds].map(([value, name]) => el("option", { value }, name)));
    form.elements.kind.value = kinds.has(kept) ? kept : "";
    document.querySelector("#results thead").replaceChildren(el("tr", {},
      [t.compare, t.result, t.kind, t.says].map((name) => el("th", { scope: "col" }, name))));
    at("notes").hidden = !body.notes.length;
    at("notelist").replaceChildren(...body.notes.map((text) => el("li", {}, text)));
    show();
    await compare();
    document.body.dataset.ready = "true";
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  at("again").addEventListener("click", load);
  load().then(() => {
    for (const name of ["text", "kind"]) if (fragment.has(name)) form.elements[name].value = fragment.get(name);
    show();
  });
})();
