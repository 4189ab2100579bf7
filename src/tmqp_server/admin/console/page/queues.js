// All queues, of which there may be ten thousand; and what is done to several of them.

import { get, patch, put, remove } from "./api.js";
import { form, sure } from "./ask.js";
import { age, badge, button, count, fill, h, link, rate, title } from "./dom.js";
import { QUEUE_OPTIONS, fromForm, initials, queueFields } from "./options.js";
import { queueHash, queuePath } from "./places.js";
import { rates } from "./rates.js";
import { may, rightsOn } from "./rights.js";
import { Rows, filterField } from "./rows.js";

/** Ask the name of what is removed where more messages than this go with it. */
const MANY = 100;
/** Found by two looks of the server: the order is right at the second one. */
const GROWTH = "-growth";
const VIEWS = [
  ["All", "", "name,queue"],
  ["Largest", "waiting>0", "-waiting"],
  ["Stuck", "oldest_age_s>300", "-oldest_age_s"],
  ["No consumers", "waiting>0 and consumers=0", "-waiting"],
  ["Dead letters", "dead>0", "-dead"],
  ["Fastest growing", "", GROWTH],
];

const FIELDS = "status,waiting,in_flight,deferred,oldest_age_s,consumers,counts";

const grown = rates();
const pace = (row) => grown(`${row.channel}/${row.queue}`, [row.counts.received_messages, row.counts.deliveries]);

/** The number of messages that go when a queue is cleared or removed. */
export const held = (row) => row.waiting + row.deferred + row.in_flight;

/** Ask, and clear a queue; true if it was done. */
export async function clearQueue(context, row) {
  const now = await get(queuePath(row.channel, row.queue));
  const name = `${row.channel}/${row.queue}`;
  const goes = now.waiting + now.deferred;
  if (!await sure(`Clear ${name}?`, [`${count(goes)} messages go: `, h("b", {}, `${count(now.waiting)} waiting, ${count(now.deferred)} deferred`), ". They cannot be brought back."], "Clear", { typed: goes > MANY ? name : "" })) return false;
  return context.act(() => remove(`${queuePath(row.channel, row.queue)}/messages`, {}, { headers: { "If-Match": `"${goes}"` } }), `${name} is cleared.`);
}

/** Ask, and remove a queue with its messages; true if it was done. */
export async function removeQueue(context, row) {
  const now = await get(queuePath(row.channel, row.queue));
  const name = `${row.channel}/${row.queue}`;
  const goes = held(now);
  if (!await sure(`Remove ${name}?`, ["The queue goes, and ", h("b", {}, `${count(goes)} messages`), " with it. They cannot be brought back."], "Remove", { typed: goes > MANY ? name : "" })) return false;
  return context.act(() => remove(queuePath(row.channel, row.queue), {}, { headers: { "If-Match": `"${goes}"` } }), `${name} is removed.`, { refreshes: false });
}

/** Create a queue. */
export const createQueue = (context, channel = "") => form("Create a queue", [
  { name: "channel", label: "Channel", required: true, value: channel, help: "It is created if it is not there" },
  { name: "queue", label: "Queue", kind: "number", required: true, most: 65535, value: 1, help: "Its number in the channel" },
  ...queueFields(),
], "Create", async (given) => {
  const options = fromForm(QUEUE_OPTIONS, given, initials(QUEUE_OPTIONS));
  await put(queuePath(given.channel, given.queue), options, { headers: { "If-None-Match": "*" } });
  context.go(queueHash(given.channel, given.queue));
});

export async function page(context) {
  const actions = h("div", { class: "row" });
  const rows = new Rows({
    caption: "Queues", empty: "No queue fits.", sort: context.query.get("sort") || "name,queue", filter: context.query.get("filter") || "",
    widths: "minmax(170px, 2.6fr) minmax(88px, 1fr) repeat(6, minmax(76px, 1fr)) minmax(112px, 1.1fr) minmax(66px, 1fr)",
    columns: [
      ["name", "Queue", (row) => [link(queueHash(row.channel, row.queue), `${row.channel}/${row.queue}`)], "", "name"],
      ["status", "Status", (row) => (["paused", "stopped"].includes(row.status) ? badge(row.status, "warn") : row.status), "", "status"],
      ["waiting", "Waiting", (row) => count(row.waiting), "n", "waiting"],
      ["in_flight", "In flight", (row) => count(row.in_flight), "n", "in_flight"],
      ["deferred", "Deferred", (row) => count(row.deferred), "n", "deferred"],
      ["oldest", "Oldest", (row) => (row.waiting ? age(row.oldest_age_s) : "–"), "n", "oldest_age_s"],
      ["in", "In/s", (row) => rate(pace(row)[0]), "n"],
      ["out", "Out/s", (row) => rate(pace(row)[1]), "n"],
      ["consumers", "Consumers", (row) => (row.consumers || !row.waiting ? count(row.consumers) : badge("none", "warn")), "n", "consumers"],
      ["dead", "Dead", (row) => count(row.counts.dead), "n", "dead"],
    ],
    keyOf: (row) => `${row.channel}/${row.queue}`,
    mark: (row) => (row.waiting && row.oldest_age_s > 300 ? "stuck" : ""),
    load: (query) => get("queues", { ...query, fields: FIELDS }),
    open: (row) => row && context.go(queueHash(row.channel, row.queue)),
    changed: (sort, filter) => { context.setQuery({ sort: sort === "name,queue" ? "" : sort, filter }); press(); },
    picked: async (picked) => {
      const buttons = picked.length ? await several(picked) : [];
      // Rights may have been asked for; meanwhile others may have been picked.
      if (picked.length === rows.picks.size) fill(actions, buttons);
    },
  });
  const several = async (picked) => [
    await allowed(picked, "update-queue") && [button("Pause", () => each(picked, "paused")), button("Go on", () => each(picked, "push"))],
    await allowed(picked, "clear-messages") && button("Clear…", () => all(picked, clearQueue), "danger"),
    await allowed(picked, "remove-queue") && button("Remove…", () => all(picked, removeQueue), "danger"),
    button("Pick none", () => rows.unpick()),
  ];
  const allowed = async (picked, right) => {
    for (const channel of new Set(picked.map((row) => row.channel))) if (!(await rightsOn({ channel })).has(right)) return false;
    return true;
  };
  const each = (picked, status) => context.act(async () => {
    for (const row of picked) await patch(queuePath(row.channel, row.queue), { status });
    rows.unpick();
  }, `${count(picked.length)} queues are ${status === "paused" ? "paused" : "delivering"}.`);
  const all = async (picked, run) => {
    for (const row of picked) if (!await run(context, row)) return;
    rows.unpick();
    await rows.refresh();
  };
  const views = VIEWS.map(([name, filter, sort]) => button(name, async () => {
    rows.sort = sort;
    rows.filter = filter;
    field.querySelector("input").value = filter;
    try { await rows.renew(); } catch (error) { context.tell(error.message, "error"); }
  }));
  const press = () => views.forEach((view, at) => view.setAttribute("aria-pressed", String(VIEWS[at][1] === rows.filter && (VIEWS[at][2] === GROWTH) === (rows.sort === GROWTH))));
  const field = filterField(rows, "name:ord* and waiting>1000", "Terms joined by and: name:ord*, waiting>1000, consumers=0, status=push");
  await rows.begin(context.tell);
  press();
  return {
    name: "Queues", every: 3000,
    element: h("div", {}, title("Queues", may("create-queue") && button("Create…", () => createQueue(context), "primary")),
      h("div", { class: "row bar-of-views" }, field, views), rows.element, actions),
    drawn: () => rows.draw(), refresh: () => rows.refresh(), end: () => rows.end(),
  };
}
