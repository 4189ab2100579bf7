// Who asked for which change, and what was answered.

import { get } from "./api.js";
import { badge, count, fill, h, quiet, title } from "./dom.js";

const KEPT = 1000;

/** What was answered: a number, unless the client went before it was. */
const answer = (code) => (code === null ? badge("no answer", "warn") : code === 200 ? badge("done", "good") : badge(`refused ${code}`, "error"));
const was = (record, key) => (key in (record.before || {}) ? ` (was ${record.before[key]})` : "");
const after = (record) => [
  ...Object.entries(record.after || {}).map(([key, value]) => `${key}=${value}${was(record, key)}`),
  ...Object.entries(record.before || {}).filter(([key]) => !(key in (record.after || {}))).map(([key, value]) => `was ${key}=${value}`), // it is no more
].join(" ");
const words = (record) => [record.who, record.action, record.subject, record.door, record.address, after(record)].join(" ").toLowerCase();

function line(record) {
  const place = [record.door, record.address].filter(Boolean).join(" ");
  return h("li", {}, h("time", {}, record.ts.slice(11, 19)), h("span", {}, record.who || "–", place && [" ", h("small", { class: "quiet" }, place)]),
    h("span", {}, h("b", {}, record.action), record.subject && ` ${record.subject}`, " ", answer(record.code), after(record) && [" ", h("span", { class: "quiet" }, after(record))]));
}

export async function page(context) {
  const list = h("ol", { class: "log", "aria-label": "Audit", tabindex: "0" });
  const none = h("p", { class: "empty" }, "No change was asked for.");
  const note = h("p", { class: "quiet under", role: "status", "aria-live": "off" });
  const find = h("input", { type: "search", name: "text", placeholder: "Who, action, subject or address", "aria-label": "Filter", oninput: () => { context.setQuery({ text: find.value }); draw(); } });
  find.value = context.query.get("text") || "";
  let records = [];
  const draw = () => {
    const text = find.value.toLowerCase();
    const seen = records.filter((each) => !text || words(each).includes(text));
    fill(list, seen.slice(0, 300).map(line));
    none.hidden = seen.length > 0;
    fill(note, `${count(seen.length)} of ${count(records.length)} records`);
  };
  const refresh = async () => {
    records = (await get("audit", { max: KEPT })).items;
    draw();
  };
  await refresh();
  return {
    name: "Audit",
    element: h("div", {}, title("Audit"), h("div", { class: "row bar-of-views" }, h("div", { class: "filter" }, find)), h("section", { class: "card flush" }, none, list, note),
      quiet(`Changes, looks at messages, traces and logins: the last ${count(KEPT)}, in UTC. If the configuration names a file, it keeps them for longer.`)),
    refresh,
    every: 5000,
  };
}
