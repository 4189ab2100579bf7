// The options of queues and channels as fields of a form, and as a list.

import { CHANNEL_OPTIONS, QUEUE_OPTIONS } from "./tables.js";
import { facts, h } from "./dom.js";
import { readPlace } from "./places.js";

const UNITS = { _ms: " (ms)", _bytes: " (bytes)" };
/** `put_back_limit` as words. */
export const label = (name) => {
  const unit = Object.keys(UNITS).find((each) => name.endsWith(each));
  const words = (unit ? name.slice(0, -unit.length) : name).replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1) + (unit ? UNITS[unit] : "");
};

const KINDS = { flag: "flag", number: "number", status: "choice" };
const spec = (option) => ({
  name: option.name, label: label(option.name), help: option.meaning, kind: KINDS[option.kind] || (option.words.length ? "choice" : "text"),
  choices: option.words, least: option.least, value: option.initial, keep: option.kind === "text",
  example: option.kind === "address" ? "dead/1" : option.kind === "ids" ? "1, 2, 3" : "",
});

export const queueFields = () => QUEUE_OPTIONS.map(spec);
export const channelFields = () => CHANNEL_OPTIONS.map(spec);

const written = (kind, value) => {
  if (kind === "address") return value ? `${value.channel}/${value.queue}` : "";
  if (kind === "ids") return value ? value.join(", ") : "";
  return value;
};

/** Options as a form has them. */
export const toForm = (table, values) => Object.fromEntries(table.map(({ name, kind }) => [name, written(kind, values[name])]));

/** What a form changes of options, as the API takes it; only what differs from `before`. */
export function fromForm(table, given, before) {
  const changes = {};
  for (const { name, kind } of table) {
    const text = given[name];
    if (kind === "number" && text === undefined) continue;
    if (String(written(kind, before[name]) ?? "") === String(text ?? "")) continue;
    if (kind === "address") changes[name] = text ? readPlace(text) : null;
    else if (kind === "ids") changes[name] = text ? text.split(",").map((each) => Number(each.trim())) : null;
    else changes[name] = text ?? "";
  }
  return changes;
}

export const initials = (table) => Object.fromEntries(table.map(({ name, initial }) => [name, initial]));

/** The options that were changed, and behind a fold all of them. */
export function optionsList(table, values) {
  const word = ({ kind, name }) => (kind === "flag" ? (values[name] ? "yes" : "no") : String(written(kind, values[name]) ?? ""));
  const pairs = (list) => facts(list.map((each) => [label(each.name), word(each)]));
  const own = table.filter((each) => String(written(each.kind, values[each.name]) ?? "") !== String(written(each.kind, each.initial) ?? ""));
  return h("div", {}, own.length ? pairs(own) : h("p", { class: "quiet" }, "All as they are from the beginning."),
    h("details", { class: "gap" }, h("summary", {}, "All options"), pairs(table)));
}

export { CHANNEL_OPTIONS, QUEUE_OPTIONS };
