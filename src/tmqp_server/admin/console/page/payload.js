// What a message says: as text, as a tree where it is JSON, and as bytes.  It is never rendered.

import { bytes, button, fill, h, quiet } from "./dom.js";

const MOST = 65536;
const MOST_NODES = 2000;

/** The bytes of a message of the API. */
export function bytesOf(item) {
  if (item.base64 !== undefined) return Uint8Array.from(atob(item.base64), (each) => each.charCodeAt(0));
  return new TextEncoder().encode(item.text ?? "");
}

/** Have the browser keep data as a file; it is never shown. */
export function download(name, data) {
  const url = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
  h("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/** The first line of a payload, short. */
export function firstLine(item) {
  if (item.text === undefined) return item.base64 === undefined ? "" : `${bytes(bytesOf(item).length)} of binary data`;
  const line = item.text.slice(0, 400).split("\n", 1)[0];
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

function hex(data) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, MOST); at += 8) {
    const part = [...data.subarray(at, at + 8)];
    const left = part.map((each) => each.toString(16).padStart(2, "0")).join(" ");
    const right = part.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${left.padEnd(23)}  ${right}`);
  }
  return h("pre", {}, lines.join("\n"));
}

function tree(value, budget, name) {
  budget.left -= 1;
  const label = name === undefined ? [] : [h("b", {}, name), ": "];
  if (budget.left < 0) return h("div", {}, "…");
  if (value === null || typeof value !== "object") return h("div", {}, label, h("span", { class: typeof value === "string" ? "s" : "k" }, JSON.stringify(value)));
  const entries = Array.isArray(value) ? value.map((each, at) => [at, each]) : Object.entries(value);
  const words = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return h("details", { open: budget.depth < 2 }, h("summary", {}, label, words), entries.slice(0, 500).map(([key, each]) => {
    budget.depth += 1;
    const made = budget.left > 0 ? tree(each, budget, key) : null;
    budget.depth -= 1;
    return made;
  }), (entries.length > 500 || budget.left <= 0) && quiet("… more is in the text"));
}

/** A payload with buttons for the forms it can be seen in. */
export function payload(item) {
  const text = item.text;
  const data = bytesOf(item);
  let value;
  try { value = text !== undefined && /^\s*[[{]/.test(text) ? JSON.parse(text) : undefined; } catch { value = undefined; }
  const cut = data.length > MOST ? quiet(`The first ${bytes(MOST)} of ${bytes(data.length)}.`) : null;
  const forms = [
    value !== undefined && ["Tree", () => h("div", { class: "tree" }, tree(value, { left: MOST_NODES, depth: 0 }))],
    text !== undefined && ["Text", () => h("pre", {}, text.slice(0, MOST))],
    ["Hex", () => hex(data)],
  ].filter(Boolean);
  const place = h("div", {});
  const buttons = forms.map(([word, make]) => button(word, () => choose(word, make)));
  const choose = (word, make) => {
    buttons.forEach((each) => each.setAttribute("aria-pressed", String(each.textContent === word)));
    fill(place, make(), cut);
  };
  if (data.length) choose(...forms[0]); else fill(place, quiet("The message has no body."));
  return h("div", {}, h("div", { class: "row bar-of-views" }, buttons, quiet(bytes(data.length))), place);
}
