// The limits of the server, and of some how much is used.

import { get } from "./api.js";
import { badge, bytes, card, count, facts, fill, h, meter, quiet, title } from "./dom.js";
import { label } from "./options.js";

/** A name that may be broken behind its underscores. */
const breakable = (name) => name.split("_").flatMap((part, at) => (at ? ["_", h("wbr"), part] : [part]));
const say = (row, value) => (row.name.includes("bytes") ? bytes(value) : count(value));

export async function page() {
  const place = h("div", {});
  const refresh = async () => {
    const { items } = await get("server/limits");
    const counted = items.filter((row) => row.used !== null && row.used !== undefined);
    fill(place,
      card("How much is used", counted.map((row) => meter(label(row.name), row.used, row.limit, row.limit ? `${say(row, row.used)} of ${say(row, row.limit)}` : say(row, row.used)))),
      card("All limits", facts(items.map((row) => [breakable(row.name), [row.limit ? say(row, row.limit) : "none", row.near && [" ", badge("near", "warn")], row.reached > 0 && [" ", badge(`reached ${count(row.reached)} times`, "error")]]]))),
      quiet("Limits are set in the configuration of the server."));
  };
  await refresh();
  return { name: "Limits", element: h("div", {}, title("Limits"), place), refresh, every: 4000 };
}
