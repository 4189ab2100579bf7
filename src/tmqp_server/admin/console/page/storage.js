// Whether messages are saved, how large the store is, and how long writing takes.

import { get, post } from "./api.js";
import { age, badge, bytes, button, card, count, facts, fill, h, link, meter, moment, quiet, table, title } from "./dom.js";
import { percentile } from "./histograms.js";
import { queueHash } from "./places.js";
import { may } from "./rights.js";

const time = (value) => (value === null ? "–" : value === Infinity ? "longer than the last bound" : `up to ${age(value / 1e6)}`);
const number = (value) => (value === null ? "–" : value === Infinity ? "more than the last bound" : `up to ${count(value)}`);

/** What has become of the last backup that was asked for here. */
function backup({ possible, last }, context) {
  const begin = button("Back up", () => context.act(() => post("server/backup"), "A backup is being made"));
  if (!possible && !last) return quiet("Name a directory by [admin] backups in the configuration to make backups from here.");
  const state = last && (last.running ? badge("being made", "warn") : last.complete ? badge("complete", "good") : badge("failed", "error"));
  return [facts([["Last", last ? [last.name, " ", state] : "none since the server began"], ["Ended", last ? moment(last.ended_at_ms) : undefined], ["It said", last ? last.said : undefined]]),
    may("manage-server") && possible && !(last && last.running) && h("div", { class: "gap" }, begin)];
}

export async function page(context) {
  const place = h("div", {});
  const refresh = async () => {
    const store = await get("server/storage");
    if (!store.stored) {
      fill(place, card(null, quiet("This server keeps messages in memory only. Start it with --data to have durable queues.")));
      return;
    }
    const rows = [["Write of a batch", store.write_us, time], ...(store.sync_us ? [["Sync of the log", store.sync_us, time]] : []), ["Read", store.read_us, time], ["Messages in a batch", store.batch_messages, number]];
    const biggest = may("see-channel") ? (await get("queues", { sort: "-disk_bytes", limit: 10, fields: "disk_bytes,spilled,waiting", filter: "disk_bytes>0" })).items.filter((row) => !row.gone) : [];
    const [copies, { counts }] = await Promise.all([get("server/backup"), get("server")]);
    const room = store.free_bytes - store.floor_bytes;
    fill(place,
      card(null, h("div", { class: "row bar-of-views" }, store.saving ? badge("saving", "good") : badge("not saving", "error"), store.problem && h("span", { class: "wrong" }, store.problem)),
        facts([["On disk", bytes(store.bytes)], ["Free", bytes(store.free_bytes)], ["Kept free", bytes(store.floor_bytes)], ["Failed writes", count(store.failures)], ["Damaged messages", count(counts.damaged)]]),
        h("div", { class: "gap" }, meter("Of the room there is", store.bytes, store.bytes + Math.max(room, 0), `${bytes(Math.max(room, 0))} left`))),
      card("Backup", backup(copies, context)),
      card("How long it takes", table("How long it takes", [["What", ([name]) => name], ["Half", ([, value, say]) => say(percentile(value, 0.5)), "n"], ["99 %", ([, value, say]) => say(percentile(value, 0.99)), "n"], ["All", ([, value, say]) => say(percentile(value, 1)), "n"], ["Times", ([, value]) => count(value.counts.reduce((sum, each) => sum + each, 0)), "n"]], rows)),
      card("Largest queues on disk", table("Largest queues on disk", [["Queue", (row) => link(queueHash(row.channel, row.queue), `${row.channel}/${row.queue}`)], ["On disk", (row) => bytes(row.disk_bytes), "n"], ["On disk only", (row) => count(row.spilled), "n"], ["Waiting", (row) => count(row.waiting), "n"]], biggest, "No queue has messages on disk.")));
  };
  await refresh();
  return { name: "Storage", element: h("div", {}, title("Storage"), place), refresh, every: 3000 };
}
