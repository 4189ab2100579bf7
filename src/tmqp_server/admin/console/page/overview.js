// How the server is now, and how it was for the last ten minutes.

import { get } from "./api.js";
import { History, chart } from "./chart.js";
import { age, badge, bytes, card, count, facts, fill, h, link, meter, rate, table, title } from "./dom.js";
import { between, percentile } from "./histograms.js";
import { queueHash } from "./places.js";
import { may } from "./rights.js";

// It lives longer than the page, so that a look at a queue does not cost the charts their past.
const history = new History();

/** The state of the server. */
function states(server) {
  return [
    badge(server.ready ? "ready" : server.problems.join(", ") || "not ready", server.ready ? "good" : "error"),
    server.role && badge(server.role, server.role === "leader" ? "good" : ""),
    server.saving !== null && (server.saving ? badge("saving", "good") : badge("not saving", "error")),
    server.draining && badge("draining", "warn"),
    server.limits_near.length > 0 && link("#/limits", badge(`${server.limits_near.length} limits near`, "warn")),
    h("span", {}, `v${server.version} · up ${age(server.uptime_s)}`),
  ];
}

/** How late the event loop was, since the page was opened, of nearly all times. */
function lateness(before, now) {
  const found = percentile(between(before, now), 0.99);
  return found === null ? "–" : found === Infinity ? "longer than the last bound" : `up to ${age(found / 1e6)}`;
}

async function simple() {
  return { name: "Overview", element: h("div", {}, title("Overview"), card(null, h("p", {}, "What you may do is in the menu. The numbers of the server need the right see-server."))) };
}

export async function page() {
  if (!may("see-server")) return simple();
  const flow = chart("Messages a second", history, [["in", "in", "one"], ["out", "delivered", "two"], ["done", "done", "three"]], "rate");
  const depth = chart("Messages kept", history, [["waiting", "waiting", "one"], ["in_flight", "in flight", "three"], ["deferred", "deferred", "four"]]);
  const traffic = chart("Bytes a second", history, [["received", "received", "one"], ["sent", "sent", "two"]], "bytes");
  const trouble = chart("Trouble a second", history, [["redelivered", "redelivered", "three"], ["dead", "dead letters", "four"], ["refused", "refused", "one"]], "rate");
  const charts = [flow, depth, traffic, trouble];
  const top = h("div", {});
  const doors = h("div", {});
  const largest = h("div", {});
  let turn = 0;
  let lags = null; // the event loop's, when the page was opened
  const late = (server) => {
    const words = lateness(lags, server.lag_us);
    lags ||= server.lag_us;
    return words;
  };
  const draw = (server) => {
    const { messages, counts } = server;
    fill(top, card(null,
      h("div", { class: "row bar-of-views" }, states(server)),
      h("div", { class: "numbers" }, [
        ["in a second", rate(history.now("in"))], ["delivered a second", rate(history.now("out"))], ["waiting", count(messages.waiting)], ["in flight", count(messages.in_flight)],
        ["queues", count(server.queues)], ["clients", count(server.clients)], ["dead letters", count(counts.dead)],
      ].map(([words, value]) => h("div", {}, h("b", {}, value), h("span", {}, words)))),
      h("div", { class: "gap" }, meter("Memory for messages", server.memory_used_bytes, server.memory_limit_bytes, `${bytes(server.memory_used_bytes)} of ${bytes(server.memory_limit_bytes)}`)),
      server.disk_free_bytes !== null && meter("Disk", server.disk_bytes, server.disk_bytes + Math.max(server.disk_free_bytes - server.disk_floor_bytes, 0), `${bytes(server.disk_bytes)}, ${bytes(server.disk_free_bytes)} free`),
      h("div", { class: "gap" }, facts([
        ["Oldest message", messages.waiting ? age(messages.oldest_age_s) : "none waits"], ["Queues without consumers", count(server.queues_without_consumers)], ["Deferred", count(messages.deferred)],
        ["Slow clients", count(server.connections_blocked)], ["Memory of the process", bytes(server.process.resident_bytes)], ["Open files", `${count(server.process.open_fds)} of ${count(server.process.max_fds)}`],
        ["Event loop late, 99 %", late(server)], ["Expired", count(counts.expired)], ["Dropped", count(counts.dropped)], ["Build", `Python ${server.python}, ${server.build}`],
      ]))));
    fill(doors, card("Doors", table("Doors", [
      ["Door", ([name]) => name], ["Connections", ([, door]) => count(door.connections), "n"], ["Opened", ([, door]) => count(door.opened), "n"],
      ["Messages in", ([, door]) => count(door.messages_received), "n"], ["Messages out", ([, door]) => count(door.messages_delivered), "n"],
      ["Received", ([, door]) => bytes(door.received_bytes), "n"], ["Sent", ([, door]) => bytes(door.sent_bytes), "n"],
    ], Object.entries(server.doors).filter(([name]) => name), "Nobody is connected.")));
  };
  const refresh = async () => {
    const server = await get("server");
    const all = Object.values(server.doors);
    const total = (name) => all.reduce((sum, each) => sum + (each[name] || 0), 0);
    const { counts, messages } = server;
    history.add(server.now_ms / 1000, { in: counts.received, out: counts.deliveries, done: counts.done, redelivered: counts.redelivered, dead: counts.dead, refused: counts.refused, received: total("received_bytes"), sent: total("sent_bytes") },
      { waiting: messages.waiting, in_flight: messages.in_flight, deferred: messages.deferred });
    draw(server);
    charts.forEach((each) => each.draw());
    if (may("see-channel") && turn % 3 === 0) {
      const { items } = await get("queues", { sort: "-waiting", limit: 8, fields: "waiting,in_flight,oldest_age_s,consumers", filter: "waiting>0" });
      fill(largest, card("Largest queues", table("Largest queues", [
        ["Queue", (row) => link(queueHash(row.channel, row.queue), `${row.channel}/${row.queue}`)], ["Waiting", (row) => count(row.waiting), "n"], ["In flight", (row) => count(row.in_flight), "n"],
        ["Oldest", (row) => age(row.oldest_age_s), "n"], ["Consumers", (row) => (row.consumers ? count(row.consumers) : badge("none", "warn")), "n"],
      ], items.filter((row) => !row.gone), "No message waits.")));
    }
    turn += 1;
  };
  await refresh();
  return {
    name: "Overview", refresh, every: 2000,
    element: h("div", {}, title("Overview"), top, h("div", { class: "grid" }, charts.map((each) => each.element)), largest, doors),
    drawn: () => charts.forEach((each) => each.draw()),
    end: () => charts.forEach((each) => each.end()),
  };
}
