"use strict";
(() => {
  const table = document.getElementById("rank");
  const form = document.getElementById("filter");
  if (table && form) {
    const bodies = [...table.tBodies];
    const rowsOf = (body) => [...body.rows].filter((row) => !row.classList.contains("grp"));
    const found = document.getElementById("found");
    const number = (count) => count.toLocaleString("en");
    const sizes = new Map(bodies.map((body) => [body, rowsOf(body).length]));
    const wanted = () => {
      const value = (name) => form.elements[name]?.value ?? "";
      const words = value("text").toLowerCase().split(/\s+/).filter(Boolean);
      const picked = [value("market"), value("provider"), value("rent")];
      return { words, picked, active: words.length > 0 || picked.some(Boolean) };
    };
    const matches = (row, want) => {
      const facets = row.dataset.f.split("|");
      const text = `${row.cells[1].textContent} ${row.dataset.f}`.toLowerCase();
      return want.words.every((word) => text.includes(word))
        && want.picked.every((value, index) => !value || facets[index] === value);
    };
    // A filter shows three times as many rows.
    const fold = (body, want) => {
      const limit = +body.dataset.shown * (want.active ? 3 : 1);
      const fitting = rowsOf(body).filter((row) => {
        row.hidden = !matches(row, want);
        return !row.hidden;
      });
      const first = new Set();
      for (const row of fitting) {
        const counts = want.active || "lead" in row.dataset;
        if (row.classList.contains("hot") || (counts && first.size < limit)) first.add(row);
      }
      const total = fitting.length;
      const few = total - first.size <= +table.dataset.few;
      for (const row of fitting) row.classList.toggle("more", !few && !first.has(row));
      const shown = few ? total : first.size;
      body.hidden = total === 0;
      const words = body.querySelector(".fold i");
      if (words) words.textContent = table.dataset.all.replace("{count}", number(total));
      const label = body.querySelector(".fold");
      if (label) label.hidden = shown === total;
      return total;
    };
    const update = () => {
      const want = wanted();
      const total = bodies.reduce((sum, body) => sum + fold(body, want), 0);
      const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
      const { of } = table.dataset;
      found.textContent = want.active ? of.replace("{found}", number(total)).replace("{all}", number(all)) : "";
    };
    const sort = (button) => {
      const column = +button.dataset.c;
      const heading = button.parentElement;
      const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      table.tHead.querySelectorAll("[aria-sort]").forEach((cell) => cell.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const key = (row) => {
        const text = row.cells[column]?.dataset.k;
        return text === undefined || text === "inf" ? null : +text;
      };
      for (const body of bodies) {
        const sorted = rowsOf(body).sort((one, two) => {
          const a = key(one);
          const b = key(two);
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * (a - b);
        });
        body.append(...sorted);
      }
      update();
    };
    form.hidden = false;
    form.addEventListener("input", update);
    form.addEventListener("reset", () => setTimeout(update));
    form.addEventListener("submit", (event) => event.preventDefault());
    table.tHead.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) sort(button);
    });
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const show = (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = mark.getBoundingClientRect();
    const half = tip.offsetWidth / 2;
    const middle = Math.min(Math.max(box.left + box.width / 2, half + 8), innerWidth - half - 8);
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${middle - half}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
})();
