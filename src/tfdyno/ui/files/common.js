"use strict";
/* What both pages share: the token, building elements, copying. */
const page = (() => {
  const t = JSON.parse(document.getElementById("texts").textContent);
  const at = (id) => document.getElementById(id);
  const say = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

  // The token stands in the fragment, which is never sent; it does not stay in the address.
  const store = (() => {
    try { return localStorage; } catch { return { getItem: () => null, setItem: () => {} }; }
  })();
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (fragment.has("token")) {
    store.setItem("token", fragment.get("token"));
    fragment.delete("token");
    history.replaceState(null, "", `#${fragment}`);
  }
  const token = store.getItem("token");
  // Another language, or page, keeps the settings and the language.
  for (const link of document.querySelectorAll(".pages a")) {
    link.addEventListener("click", () => {
      if (link.id === "language") link.hash = location.hash;
      else link.search = location.search;
    });
  }
  const fetched = async (path, signal) => {
    const answer = await fetch(path, { signal, headers: { authorization: `Bearer ${token}` } });
    return { status: answer.status, body: await answer.json() };
  };

  // The policy of the page allows no style in markup.
  const make = (space, name, attributes, children) => {
    const made = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
    }
    made.append(...children.flat().filter((one) => one !== null && one !== undefined));
    return made;
  };
  const el = (name, attributes, ...children) => make("", name, attributes, children);
  const svg = (name, attributes, ...children) =>
    make("http://www.w3.org/2000/svg", name, attributes, children);

  const copy = async (button, text, done) => {
    const before = button.textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const area = el("textarea", {}, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = done;
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  return { t, at, say, fragment, token, fetched, el, svg, copy };
})();
