// Channels: what holds queues.

import { get, patch, put, remove } from "./api.js";
import { form, sure } from "./ask.js";
import { badge, button, card, count, encode, facts, fill, h, link, title } from "./dom.js";
import { CHANNEL_OPTIONS, channelFields, fromForm, initials, optionsList, toForm } from "./options.js";
import { may, rightsOn } from "./rights.js";
import { Rows, filterField } from "./rows.js";
import { createQueue } from "./queues.js";

const path = (name) => `channels/${encode(name)}`;

export async function page(context) {
  const create = () => form("Create a channel", [{ name: "channel", label: "Name", required: true }, ...channelFields()], "Create", async (given) => {
    await put(path(given.channel), fromForm(CHANNEL_OPTIONS, given, initials(CHANNEL_OPTIONS)), { headers: { "If-None-Match": "*" } });
    context.tell(`The channel ${given.channel} is created.`);
    await rows.renew();
  });
  const place = h("div", {});
  const show = async (row) => {
    const can = await rightsOn({ channel: row.name });
    fill(place, card(row.name,
      facts([["Queues", count(row.queues.length)], ["Joined", count(row.consumers)], ["Owner", row.owner]]),
      h("h2", { class: "gap" }, "Options"), optionsList(CHANNEL_OPTIONS, row.options),
      h("div", { class: "row end" }, link(`#/queues?filter=${encode(`name:${row.name}`)}`, "Its queues"),
        can.has("create-queue") && button("Create a queue…", () => createQueue(context, row.name)),
        can.has("update-channel") && button("Edit…", () => edit(row)),
        can.has("remove-channel") && button("Remove…", () => drop(row), "danger"),
        button("Close", () => fill(place)))));
    place.scrollIntoView({ block: "nearest" });
  };
  const edit = (row) => form(`Options of ${row.name}`, channelFields(), "Save", async (given) => {
    const changes = fromForm(CHANNEL_OPTIONS, given, row.options);
    if (Object.keys(changes).length) await patch(path(row.name), changes);
    context.tell(`The channel ${row.name} is changed.`);
    await rows.refresh();
  }, { values: toForm(CHANNEL_OPTIONS, row.options) });
  const drop = async (row) => {
    if (await sure(`Remove the channel ${row.name}?`, ["It goes with its ", h("b", {}, `${count(row.queues.length)} queues`), " and all their messages. They cannot be brought back."], "Remove", { typed: row.queues.length ? row.name : "" })
      && await context.act(() => remove(path(row.name)), `The channel ${row.name} is removed.`)) {
      fill(place);
    }
  };
  const rows = new Rows({
    caption: "Channels", empty: "No channel fits.", sort: "name", filter: context.query.get("filter") || "",
    widths: "minmax(180px, 3fr) repeat(2, minmax(80px, 1fr)) minmax(120px, 2fr) minmax(120px, 2fr)",
    columns: [
      ["name", "Channel", (row) => row.name, "", "name"],
      ["queues", "Queues", (row) => count(row.queues.length), "n", "queues"],
      ["consumers", "Joined", (row) => count(row.consumers), "n", "consumers"],
      ["lifetime", "Ends with", (row) => row.options.lifetime && badge(row.options.lifetime)],
      ["owner", "Owner", (row) => row.owner],
    ],
    keyOf: (row) => row.name,
    load: (query) => get("channels", query),
    open: (row) => row && show(row),
    changed: (_sort, filter) => context.setQuery({ filter }),
  });
  await rows.begin(context.tell);
  return {
    name: "Channels", every: 4000,
    element: h("div", {}, title("Channels", may("create-channel") && button("Create…", create, "primary")), h("div", { class: "row bar-of-views" }, filterField(rows, "name:ord*", "name:ord*")), rows.element, place),
    drawn: () => rows.draw(), refresh: () => rows.refresh(), end: () => rows.end(),
  };
}
