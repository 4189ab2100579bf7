// Who is connected, what each has joined, and what it does.

import { get, remove } from "./api.js";
import { sure } from "./ask.js";
import { age, badge, button, card, count, encode, facts, fill, h, link, quiet, rate, table, title } from "./dom.js";
import { rates } from "./rates.js";
import { may } from "./rights.js";
import { Rows, filterField } from "./rows.js";
import { tracing } from "./trace.js";

const grown = rates();
const pace = (row) => grown(row.id, [row.pushed, row.delivered]);
const name = (row) => row.name || row.type || row.id;

function details(row) {
  const joined = row.joined || [];
  const words = (value) => (value < 0 ? "no bound" : count(value));
  return [
    facts([["Id", row.id], ["Name", row.name], ["Type", row.type], ["Door", row.door], ["Connected for", age(row.online_ms / 1000)], ["Logged in", row.authenticated ? "yes" : "no"],
      ["Address", row.address], ["Connection", count(row.session)], ["Held back for", row.blocked_s === null ? undefined : badge(age(row.blocked_s), "error")], ["Pushed", count(row.pushed)], ["Delivered", count(row.delivered)], ["Acknowledged", count(row.acknowledged)], ["Refused", count(row.negative_acks)],
      ["Not acknowledged in time", count(row.ack_timeouts)], ["In flight", count(row.in_flight)], ...Object.entries(row.properties || {})]),
    h("h2", { class: "gap" }, "Subscriptions"),
    table("Subscriptions", [
      ["Channel", (each) => link(`#/queues?filter=${encode(`name:${each.channel}`)}`, each.channel)],
      ["Credit", (each) => words(each.credit), "n"], ["Window", (each) => words(each.window), "n"],
      ["Held", (each) => (each.held === null ? "not counted" : count(each.held)), "n"],
      ["Priority", (each) => count(each.priority), "n"], ["Filter", (each) => (each.filtered ? "yes" : "no")], ["For", (each) => age(each.joined_ms / 1000), "n"],
    ], joined, "It has joined no channel."),
    row.joined_hidden ? quiet(`${count(row.joined_hidden)} more are in channels that you may not see.`) : null,
  ];
}

export async function page(context) {
  const place = h("div", {});
  const below = h("div", {}); // apart from what is filled anew each time, so that it stays scrolled
  let open = "";
  let trace = null;
  const close = () => {
    if (trace) trace.end();
    trace = null;
    open = "";
    fill(below);
  };
  const rows = new Rows({
    caption: "Clients", empty: "No client fits.", sort: context.query.get("sort") || "name", filter: context.query.get("filter") || "",
    widths: "minmax(150px, 2fr) minmax(70px, 1fr) minmax(110px, 1.4fr) repeat(2, minmax(70px, 0.8fr)) repeat(5, minmax(68px, 0.9fr))",
    columns: [
      ["name", "Client", (row) => [name(row), row.blocked && [" ", badge("blocked", "error")]], "", "name"],
      ["door", "Door", (row) => row.door, "", "door"],
      ["type", "Type", (row) => row.type, "", "type"],
      ["online", "Since", (row) => age(row.online_ms / 1000), "n", "online_ms"],
      ["subscriptions", "Joined", (row) => count(row.subscriptions), "n", "subscriptions"],
      ["pushed", "Pushed", (row) => count(row.pushed), "n", "pushed"],
      ["in", "In/s", (row) => rate(pace(row)[0]), "n"],
      ["delivered", "Delivered", (row) => count(row.delivered), "n", "delivered"],
      ["out", "Out/s", (row) => rate(pace(row)[1]), "n"],
      ["in_flight", "In flight", (row) => count(row.in_flight), "n", "in_flight"],
    ],
    keyOf: (row) => row.id,
    load: (query) => get("clients", query),
    open: (row) => row && show(row.id, true),
    changed: (sort, filter) => context.setQuery({ sort: sort === "name" ? "" : sort, filter }),
  });
  const show = async (id, scroll) => {
    try {
      const row = await get(`clients/${encode(id)}`);
      if (open !== id) {
        close();
        open = id;
        trace = may("manage-clients") ? tracing(context, id, name(row)) : null;
        fill(below, trace && trace.element);
      }
      fill(place, card(name(row), details(row), h("div", { class: "row end" }, button("Close", () => { close(); fill(place); }),
        may("manage-clients") && button("Disconnect…", () => cut(row), "danger"))));
      if (scroll) place.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (error.status !== 404) throw error;
      close();
      fill(place, card(null, quiet("This client is no longer connected.")));
    }
  };
  const cut = async (row) => {
    if (await sure(`Disconnect ${name(row)}?`, ["Its connection ends; what it has not acknowledged (", h("b", {}, count(row.in_flight)), ") goes back to the queues. It may connect again."], "Disconnect")
      && await context.act(() => remove(`clients/${encode(row.id)}`), `${name(row)} is disconnected.`, { refreshes: false })) {
      close();
      fill(place);
      await context.again();
    }
  };
  await rows.begin(context.tell);
  return {
    name: "Clients", every: 3000,
    element: h("div", {}, title("Clients"), h("div", { class: "row bar-of-views" }, filterField(rows, "name:web*", "name:web*, door=nsq, in_flight>100")), rows.element, place, below),
    drawn: () => rows.draw(),
    refresh: async () => { await rows.refresh(); if (open) await show(open, false); if (trace) await trace.refresh(); },
    end: () => { close(); rows.end(); },
  };
}
