"use strict";
/* What both pages share: the token, building elements, copying. */
const page = (() => {
  const t = JSON.parse(document.getElementById("texts").textContent);
  const at = (id) => document.getElementById(id);
  const say = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

  // The token stands in the fragment, which is never sent; it does not stay in the address.
  const fragment = new URLSearchParams(location.hash.slice(1));
  let token = fragment.get("token");
  let isKept = true;
  try {
    if (token) localStorage.setItem("token", token);
    token = localStorage.getItem("token");
  } catch { isKept = false; }
  if (fragment.has("token")) {
    fragment.delete("token");
    history.replaceState(null, "", `#${fragment}`);
  }
  // Another language keeps the settings, another page the language; where a browser stores nothing,
  // both keep the token.
  for (const link of document.querySelectorAll(".pages a")) {
    link.addEventListener("click", () => {
      const kept = new URLSearchParams(link.id === "language" ? location.hash.slice(1) : "");
      if (token && !isKept) kept.set("token", token);
      link.hash = kept;
      if (link.id !== "language") link.search = location.search;
    });
  }
  // As an address it would take the place of the settings.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    at("answer").focus();
  });
  const fetched = async (path, signal) => {
    try {
      const headers = { authorization: `Bearer ${token}`, "accept-language": document.documentElement.lang };
      const answer = await fetch(path, { signal, headers });
      const text = await answer.text();
      try { return { status: answer.status, body: JSON.parse(text) }; } catch {
        return { status: 502, body: { error: say(t.no_words, { status: answer.status }) } };
      }
    } catch (wrong) {
      if (signal?.aborted) throw wrong;
      return { status: 0, body: { error: t.gone } };
    }
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

  const said = el("p", { class: "out", role: "status" });
  document.body.append(said);
  const copied = new WeakMap();
  const copy = async (button, text, done) => {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = el("textarea", {}, text);
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const { own, timer } = copied.get(button) ?? { own: button.textContent };
    clearTimeout(timer);
    said.textContent = done;
    button.textContent = done;
    copied.set(button, { own, timer: setTimeout(() => {
      copied.delete(button);
      button.textContent = own;
      said.textContent = "";
    }, 1500) });
  };
  return { t, at, say, fragment, token, fetched, el, svg, copy };
})();
