// One queue: what waits in it, who consumes it, its options, its dead letters.

import { get, patch, post, remove } from "./api.js";
import { form, sure } from "./ask.js";
import { History, chart } from "./chart.js";
import { age, badge, button, bytes, card, count, encode, facts, fill, h, link, meter, moment, quiet, table, title } from "./dom.js";
import { QUEUE_OPTIONS, fromForm, optionsList, queueFields, toForm } from "./options.js";
import { download, firstLine } from "./payload.js";
import { crumbs, messagesHash, queueHash, queuePath, readPlace } from "./places.js";
import { clearQueue, removeQueue } from "./queues.js";
import { may, rightsOn } from "./rights.js";

const LETTERS = 100;
const header = (row, name) => (row.headers || []).find(([key]) => key.toLowerCase() === name)?.[1];

/** The messages of this queue that are dead letters of others, with what is done to them. */
function letters(context, path, can) {
  const picks = new Set();
  const actions = h("div", { class: "row end" });
  const place = h("div", {});
  let rows = [];
  const said = () => fill(actions, !rows.length ? [] : [
    quiet(picks.size ? `${count(picks.size)} picked` : "None picked: all are meant."),
    can.has("clear-messages") && button("Send again…", () => again("first"), "primary"),
    can.has("clear-messages") && button("Send to…", () => to()),
    button("Export", () => download("dead-letters.jsonl", chosen().map((row) => `${JSON.stringify(row)}\n`).join(""))),
    can.has("clear-messages") && picks.size > 0 && button("Delete…", drop, "danger"),
  ]);
  const chosen = () => rows.filter((row) => !picks.size || picks.has(row.id));
  const drop = async () => {
    const gone = chosen();
    if (!await sure(`Delete ${count(gone.length)} dead letters?`, "They go, and cannot be brought back.", "Delete")) return;
    picks.clear();
    await context.act(async () => { for (const row of gone) await remove(`${path}/messages/${encode(row.id)}`, { state: "waiting" }); }, `${count(gone.length)} dead letters are deleted.`);
  };
  const draw = () => {
    fill(place, table("Dead letters", [
      ["Pick", (row) => h("input", { type: "checkbox", "data-key": `pick ${row.sequence}`, "aria-label": `Pick ${row.id}`, checked: picks.has(row.id), onchange: (event) => { if (event.target.checked) picks.add(row.id); else picks.delete(row.id); said(); } })],
      ["Reason", (row) => badge(header(row, "dead-letter-reason"), "error")],
      ["Attempts", (row) => header(row, "dead-letter-attempts"), "n"],
      ["First queue", (row) => {
        const first = (header(row, "dead-letter-queue") || "").replace(/;(\d+)$/, "/$1");
        try { const found = readPlace(first); return link(queueHash(found.channel, found.queue), first); } catch { return first; }
      }],
      ["Id", (row) => h("code", {}, row.id)],
      ["Body", (row) => firstLine(row)],
    ], rows));
    said();
  };
  const terms = (where) => ({ to: where, ...(picks.size ? { ids: [...picks] } : {}) });
  const move = async (where, words) => {
    // What would move is counted by the server before anybody is asked.
    const trial = await post(`${path}/transfers`, { ...terms(where), dry_run: true });
    if (!await sure("Send again?", [h("b", {}, `${count(trial.count)} messages`), ` go to ${words} and leave here.`], "Do it", { danger: false })) return;
    const wanted = terms(where);
    picks.clear();
    let found = { moved: 0, failed: [] };
    await context.act(async () => { found = await post(`${path}/transfers`, wanted); }, `The messages are sent to ${words}.`);
    if (found.failed.length) context.tell(`${count(found.moved)} are sent. ${found.failed.map((each) => `${count(each.count)} stay here: ${each.reason}.`).join(" ")}`, "warn");
  };
  const again = (where) => move(where, "their first queues").catch((error) => context.tell(error.message, "error"));
  const to = () => form("Send to another queue", [{ name: "to", label: "Queue", required: true, example: "orders/1" }], "Go on", async (given) => {
    const target = readPlace(given.to);
    setTimeout(() => move(target, given.to).catch((error) => context.tell(error.message, "error")));
  });
  const element = card("Dead letters in this queue", quiet(`Messages that other queues gave up; the first ${LETTERS} are looked at.`), place, actions);
  element.hidden = true;
  return {
    element,
    refresh: async () => {
      const got = await get(`${path}/messages`, { max: LETTERS }).catch((error) => { if ([400, 403, 409].includes(error.status)) return { items: [] }; throw error; });
      rows = got.items.filter((row) => header(row, "dead-letter-reason"));
      element.hidden = !rows.length;
      draw();
    },
  };
}

export async function page(context) {
  const [, channel, number] = context.parts;
  const path = queuePath(channel, number);
  const name = `${channel}/${number}`;
  const can = await rightsOn({ channel, queue: number });
  const history = new History();
  const flow = chart("Messages a second", history, [["in", "in", "one"], ["out", "delivered", "two"], ["done", "done", "three"]], "rate");
  const depth = chart("Messages here", history, [["waiting", "waiting", "one"], ["in_flight", "in flight", "three"], ["deferred", "deferred", "four"]]);
  const top = h("div", {});
  const state = h("div", {});
  const people = h("div", {});
  const settings = h("div", {});
  const dead = can.has("browse") ? letters(context, path, can) : { element: null, refresh: () => {} };
  let row = null;
  let turn = 0;

  const edit = () => form(`Options of ${name}`, queueFields(), "Save", async (given) => {
    const changes = fromForm(QUEUE_OPTIONS, given, row.options);
    if (Object.keys(changes).length) await patch(path, changes);
    context.tell(`${name} is changed.`);
    setTimeout(context.again);
  }, { values: toForm(QUEUE_OPTIONS, row.options) });
  const turnTo = (status, words) => context.act(() => patch(path, { status }), `${name} ${words}.`);

  const draw = () => {
    const stopped = ["paused", "stopped"].includes(row.status);
    fill(top, crumbs(channel, number), title(name,
      can.has("browse") && h("a", { class: "button", href: messagesHash(channel, number) }, "Messages"),
      can.has("push") && h("a", { class: "button", href: `#/publish?name=${encode(name)}` }, "Publish"),
      can.has("update-queue") && (stopped ? button("Go on", () => turnTo("push", "delivers")) : button("Pause", () => turnTo("paused", "is paused"))),
      can.has("update-queue") && button("Edit…", edit),
      can.has("clear-messages") && button("Clear…", () => clearQueue(context, row), "danger"),
      can.has("remove-queue") && button("Remove…", async () => { if (await removeQueue(context, row)) context.go("#/queues"); }, "danger")));
    const limit = row.options.message_limit;
    fill(state, card(null,
      h("div", { class: "numbers" }, [["waiting", row.waiting], ["in flight", row.in_flight], ["deferred", row.deferred], ["dead", row.counts.dead], ["consumers", row.consumers]]
        .map(([words, value]) => h("div", {}, h("b", {}, count(value)), h("span", {}, words)))),
      row.waiting > 0 && !row.consumers && row.status !== "pull" ? h("p", { class: "banner warn gap"
      }, "Messages wait, and there is no consumer.") : null, limit ? meter("Of its limit",
      row.waiting, limit) : null, h("div", { class: "gap" }, facts([ ["Status", stopped ?
      badge(row.status, "warn") : row.status], ["Oldest message", row.waiting ?
      age(row.oldest_age_s) : "none waits"], ["In memory", bytes(row.bytes)], ["On disk",
      bytes(row.disk_bytes)], ["On disk only", count(row.spilled)], ["Last came",
      moment(row.last_received_ms)], ["Last went", moment(row.last_sent_ms)], ["Came in",
      count(row.counts.received_messages)], ["Done", count(row.counts.done)], ["Expired",
      count(row.counts.expired)], ["Put back", count(row.counts.requeued)], ["Not acknowledged in
      time", count(row.counts.ack_timeouts)], ["Refused", count(row.counts.refused)], ["Dropped",
      count(row.counts.dropped)], ["Its dead letters go to", row.options.dead_letter ?
      link(queueHash(row.options.dead_letter.channel, row.options.dead_letter.queue),
      `${row.options.dead_letter.channel}/${row.options.dead_letter.queue}`) : "nowhere: they are
      dropped"], ])))); }; const drawSlow = async () => { fill(settings, card("Options",
      optionsList(QUEUE_OPTIONS, row.options))); const found = can.has("see-consumers") ? await
      get(`${path}/consumers`) : null; if (found) { fill(people, card("Consumers",
      table("Consumers", [ ["Client", (each) => (may("see-clients") ?
      link(`#/clients?filter=${encode(`id=${each.id}`)}`, each.name || each.id) : each.name ||
      each.id)], ["Door", (each) => each.door], ["For", (each) => age(each.online_ms / 1000), "n"],
      ["Delivered", (each) => count(each.delivered), "n"], ["Acknowledged", (each) =>
      count(each.acknowledged), "n"], ["In flight", (each) => [count(each.in_flight), each.blocked
      && badge("blocked", "error")], "n"], ], found.items, "Nobody has joined the channel."))); }
      await dead.refresh(); }; const refresh = async () => { row = await get(path);
      history.add(Date.now() / 1000, { in: row.counts.received_messages, out: row.counts.deliveries,
      done: row.counts.done }, { waiting: row.waiting, in_flight: row.in_flight, deferred:
      row.deferred }); draw(); if (turn % 3 === 0) await drawSlow(); turn += 1; flow.draw();
      depth.draw(); }; await refresh(); return { name, refresh, every: 1500, element: h("div", {},
      top, state, h("div", { class: "grid" }, flow.element, depth.element), dead.element, people,
      settings), drawn: () => { flow.draw(); depth.draw(); }, end: () => { flow.end(); depth.end();
      }, }; }
