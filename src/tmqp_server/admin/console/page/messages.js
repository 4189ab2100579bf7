// The messages of a queue: looked at, and not taken.

import { get, remove } from "./api.js";
import { fields, sure } from "./ask.js";
import { badge, button, bytes, card, count, encode, facts, fill, h, moment, quiet, table, title } from "./dom.js";
import { bytesOf, download, firstLine, payload } from "./payload.js";
import { crumbs, queueHash, queuePath } from "./places.js";
import { rightsOn } from "./rights.js";

const PORTION = 50;
/** How often a look at the end begins further ahead, where few messages fit. */
const STEPS = 12;

export async function page(context) {
  const [, channel, number] = context.parts;
  const path = `${queuePath(channel, number)}/messages`;
  const can = await rightsOn({ channel, queue: number });
  const asked = fields([
    { name: "state", label: "State", kind: "choice", choices: ["all", "waiting", "deferred", "in-flight"] },
    { name: "at", label: "Show", kind: "choice", choices: ["the first", "the last", "from sequence"] },
    { name: "from", label: "From sequence", kind: "number" },
    { name: "id", label: "Message id" },
    { name: "filter", label: "Filter of headers", example: "Country=fr", help: "As consumers write it" },
  ], Object.fromEntries(context.query));
  const list = h("div", {});
  const detail = h("div", {});
  const note = h("p", { class: "quiet" });
  let items = [];
  let next = null;
  let open = null;

  const draw = () => {
    fill(list, table("Messages", [
      ["Sequence", (row) => h("button", { type: "button", class: "sort link", "data-key": `message ${row.sequence}`, onclick: () => show(row) }, count(row.sequence))],
      ["State", (row) => [row.state === "waiting" ? row.state : badge(row.state, "warn"), row.priority === "high" && badge("high")]],
      ["Id", (row) => h("code", { class: "short", title: row.id }, row.id.length > 12 ? `${row.id.slice(0, 10)}…` : row.id)],
      ["Size", (row) => bytes(bytesOf(row).length), "n"],
      ["Body", (row) => firstLine(row)],
    ], items, "No message fits."));
  };
  const show = (row) => {
    open = row;
    fill(detail, card(`Message ${count(row.sequence)}`,
      facts([
        ["Id", row.id], ["Producer", row.source], ["State", row.state], ["Deliveries", row.attempts ?? row.attempt],
        ["Due", row.due_at_ms && moment(row.due_at_ms)], ["Expires", row.expires_at_ms && moment(row.expires_at_ms)], ["Priority", row.priority],
      ].filter(([, value]) => value !== undefined)),
      h("h2", { class: "gap" }, "Headers"),
      table("Headers", [["Name", (pair) => pair[0]], ["Value", (pair) => pair[1]]], row.headers || [], "None."),
      h("h2", { class: "gap" }, "Body"), payload(row),
      h("div", { class: "row end" },
        button("Copy id", () => navigator.clipboard.writeText(row.id).then(() => context.tell("The id is copied."), () => context.tell("The browser does not let the page copy.", "warn"))),
        button("Download", () => download(`message-${row.sequence}.bin`, bytesOf(row))),
        row.state === "waiting" && can.has("clear-messages") && button("Remove message…", () => drop(row), "danger"),
        row.state === "deferred" && can.has("cancel") && button("Cancel message…", () => cancel(row), "danger"))));
    detail.scrollIntoView({ block: "nearest" });
  };
  const cancel = async (row) => {
    if (!await sure("Cancel a deferred message", ["The message ", h("b", {}, row.id), " is removed before it is due."], "Cancel it")) return;
    if (await context.act(() => remove(`${path}/${encode(row.id)}`), "The message is cancelled.")) { fill(detail); await look(true); }
  };
  const drop = async (row) => {
    if (!await sure("Remove a message", ["The message ", h("b", {}, row.id), " goes, and cannot be brought back."], "Remove it")) return;
    if (await context.act(() => remove(`${path}/${encode(row.id)}`, { state: "waiting" }), "The message is removed.")) { fill(detail); await look(true); }
  };
  let working = Promise.resolve();
  /** One portion after the other: whoever presses "More" twice gets the next one and that behind it. */
  const look = (first) => {
    const done = working.then(() => (first || next !== null ? portion(first) : null));
    working = done.catch(() => {});
    return done;
  };
  const portion = async (first) => {
    const { from, at, ...terms } = asked.read();
    if (terms.state === "all") delete terms.state;
    if (at === "the last") return last(terms, first);
    const got = await get(path, { ...terms, from: first ? (at === "the first" ? undefined : from) : next, max: PORTION });
    items = first ? got.items : [...items, ...got.items];
    next = got.next ?? (got.items.length === PORTION ? got.items.at(-1).sequence + 1 : null);
    show_(next);
  };
  /** The last messages, the newest first: from so far before the end that enough fit. */
  const last = async (terms, first) => {
    const end = first ? (await get(queuePath(channel, number))).last_sequence : next;
    let found = [];
    let from = end + 1;
    for (let step = 0; step < STEPS && from > 0 && found.length < PORTION; step += 1) {
      const to = from - 1;
      from = Math.max(0, from - PORTION * 2 ** step);
      const part = [];
      for (let at = from; at !== null && at <= to;) {
        const got = await get(path, { ...terms, from: at, max: 1000 });
        part.push(...got.items.filter((each) => each.sequence <= to));
        at = got.next ?? (got.items.length === 1000 ? got.items.at(-1).sequence + 1 : null);
      }
      found = [...part, ...found];
    }
    items = [...(first ? [] : items), ...found.reverse()];
    next = from > 0 ? from - 1 : null;
    show_(next);
  };
  const show_ = (left) => {
    fill(note, `${count(items.length)} messages${left ? "; there are more" : ""}. Looking changes nothing: they stay where they are.`);
    more.hidden = !left;
    draw();
  };
  const more = button("More", () => context.act(() => look(false), ""));
  const wrong = h("p", { class: "wrong", role: "alert" });
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    context.setQuery(asked.read());
    try { await look(true); fill(wrong); } catch (error) { fill(wrong, error.message); }
  } }, h("div", { class: "fields" }, asked.elements), wrong, h("div", { class: "row end" }, h("button", { class: "primary" }, "Look")));
  try { await look(true); } catch (error) { if (error.status !== 400 && error.status !== 409) throw error; fill(wrong, error.message); }
  const element = h("div", {}, crumbs(channel, number), title(`Messages of ${channel}/${number}`, h("a", { class: "button", href: queueHash(channel, number) }, "Queue")),
    card(null, form), h("div", { class: "split" }, h("div", {}, card(null, note, list, h("div", { class: "row end" }, more))), detail));
  if (!open) fill(detail, quiet("Choose a message to see its headers and its body."));
  return { name: `Messages of ${channel}/${number}`, element };
}
