// Elements from data.  Text from outside reaches the document as text nodes and attributes only,
// never as markup; characters that cannot be seen, or that turn the direction of a line, are shown.

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/;
const EACH_UNSEEN = new RegExp(UNSEEN, "g");
const code = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** A text with its unseen characters written out, for attributes and titles. */
export const plain = (text) => String(text).replace(EACH_UNSEEN, (each) => `‹${code(each)}›`);

/** The nodes of a text: its unseen characters become small marks. */
export function shown(value) {
  const text = String(value);
  if (!UNSEEN.test(text)) return [document.createTextNode(text)];
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(EACH_UNSEEN)) {
    nodes.push(document.createTextNode(text.slice(from, found.index)));
    const mark = document.createElement("span");
    mark.className = "unseen";
    mark.textContent = code(found[0]);
    nodes.push(mark);
    from = found.index + found[0].length;
  }
  nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

const nodesOf = (children) => children.flat(9)
  .filter((each) => each !== null && each !== undefined && each !== false && each !== "")
  .flatMap((each) => (each instanceof Node ? [each] : shown(each)));

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, plain(value));
  }
  element.append(...nodesOf(children));
  return element;
}

/** An element: attributes, listeners (`onclick`) and children. */
export const h = (tag, attributes, ...children) => dress(document.createElement(tag), attributes, children);

/** The same in SVG. */
export const svg = (tag, attributes, ...children) => dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** Put new children into an element; the focus stays on the child of the same key. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const key = focused && (focused.dataset.key || focused.getAttribute("href"));
  const selection = focused instanceof HTMLInputElement && focused.type === "text" ? [focused.value, focused.selectionStart, focused.selectionEnd] : null;
  element.replaceChildren(...nodesOf(children));
  if (!key) return element;
  const again = [...element.querySelectorAll("[data-key], a[href]")].find((each) => (each.dataset.key || each.getAttribute("href")) === key);
  if (again) {
    again.focus({ preventScroll: true });
    if (selection && again instanceof HTMLInputElement) {
      again.value = selection[0];
      again.setSelectionRange(selection[1], selection[2]);
    }
  }
  return element;
}

// --- Values in words -----------------------------------------------------------------------------

export const encode = encodeURIComponent;
const NONE = "–";
const missing = (value) => value === null || value === undefined || Number.isNaN(value);

/** A whole number with commas. */
export const count = (value) => (missing(value) ? NONE : Math.round(value).toLocaleString("en-US"));

/** A number a second, short: 1.2k. */
export function rate(value) {
  if (missing(value)) return NONE;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
  return value < 10 && value % 1 ? value.toFixed(1) : count(value);
}

/** Bytes with a unit. */
export function bytes(value) {
  if (missing(value)) return NONE;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1024 && step < units.length - 1) { value /= 1024; step += 1; }
  return `${step && value < 100 ? value.toFixed(1) : Math.round(value)}\u00a0${units[step]}`;
}

/** Seconds as the two largest units. */
export function age(seconds) {
  if (missing(seconds)) return NONE;
  if (seconds < 1) return seconds < 0.001 ? "0\u00a0s" : `${Math.round(seconds * 1000)}\u00a0ms`;
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    if (seconds >= size) parts.push(`${Math.floor(seconds / size)}\u00a0${unit}`);
    seconds %= size;
  }
  return parts.slice(0, 2).join(" ");
}

/** A Unix time in milliseconds as date and time of this browser's place. */
export const moment = (ms) => (missing(ms) ? NONE : new Date(ms).toLocaleString("sv-SE"));

/** A Unix time in milliseconds as time of the day. */
export const clock = (ms) => new Date(ms).toLocaleTimeString("sv-SE");

// --- Pieces that all pages use -------------------------------------------------------------------

export const link = (hash, ...children) => h("a", { href: hash }, ...children);
export const badge = (text, kind) => h("span", { class: `badge ${kind || ""}` }, text);
export const quiet = (...children) => h("p", { class: "quiet" }, ...children);
export const button = (text, run, kind) => h("button", { type: "button", class: kind, onclick: run, "data-key": `button ${text}` }, text);

/** The heading of a page with its actions beside it. */
export const title = (text, ...actions) => h("div", { class: "title" }, h("h1", {}, text), h("div", { class: "row" }, ...actions));

/** A box with a heading. */
export const card = (heading, ...children) => h("section", { class: "card" }, heading && h("h2", {}, heading), ...children);

/** Terms and their values side by side; pairs whose value is undefined are left out. */
export const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value === null || value === "" ? NONE : value))));

/** How much of a bound is used, as a bar with its words. */
export function meter(label, used, bound, words) {
  const part = bound ? Math.min(1, used / bound) : 0;
  const kind = part > 0.85 ? "bad" : part > 0.6 ? "warn" : "";
  const bar = svg("svg", { class: `bar ${kind}`, viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "rail", width: 100, height: 6, rx: 2 }), svg("rect", { class: "part", width: (part * 100).toFixed(1), height: 6, rx: 2 }));
  return h("div", { class: "meter" }, h("span", {}, label), bar, h("span", { class: "n" }, words || `${Math.round(part * 100)}\u00a0%`));
}

/** A table of few rows.  A column is [heading, cell of a row, "n" for numbers]. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty || "Nothing here.");
  return h("div", { class: "scroll" }, h("table", { class: "stacks" },
    h("caption", { class: "unseen-caption" }, caption),
    h("thead", {}, h("tr", {}, columns.map(([name, , kind]) => h("th", { scope: "col", class: kind }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([name, cell, kind], at) => {
      const inner = cell(row);
      return h("td", { class: `${kind || ""} ${at ? "" : "head"}`, "data-label": name }, h("div", {}, missing(inner) || inner === "" ? NONE : inner));
    }))))));
}
