// What takes long: consumers that read too little, and turns of the event loop.

import { get } from "./api.js";
import { age, bytes, card, count, fill, h, link, moment, quiet, table, title } from "./dom.js";
import { may } from "./rights.js";

export async function page() {
  const place = h("div", {});
  const refresh = async () => {
    const { consumers, turns, count: all, slow_turn_ms: bound } = await get("server/slow");
    fill(place,
      card("Slow consumers", table("Slow consumers", [
        ["Address", (row) => row.peer || "unknown"], ["Connection", (row) => count(row.session), "n"],
        ["Held back for", (row) => age(row.blocked_s), "n"], ["Waits for it", (row) => bytes(row.waiting_bytes), "n"],
      ], consumers, "No consumer is slow at this moment."),
      consumers.length > 0 && may("see-clients") && quiet("Which clients these are: ", link("#/clients?filter=blocked%3D1", "those that are held back"), ".")),
      card("Slow turns", quiet(`One that takes longer than ${age(bound / 1000)}: everybody waits so long. There were ${count(all)} since the server began; the last ones are here.`),
        table("Slow turns", [
          ["When", (row) => moment(row.at_ms)], ["Took", (row) => age(row.took_ms / 1000), "n"],
          ["Most of it", (row) => (row.session ? row.peer || `connection ${row.session}` : "the server's own work")],
          ["Of that", (row) => (row.session ? age(row.session_ms / 1000) : null), "n"],
        ], turns, "No turn was slow.")));
  };
  await refresh();
  return { name: "Slow", element: h("div", {}, title("Slow"), place), refresh, every: 3000 };
}
