// Who is logged in, and which rights that gives: anywhere, or about a channel, a queue, a router or a space of cells.

import { get } from "./api.js";
import { fields } from "./ask.js";
import { age, badge, card, facts, fill, h, quiet, title } from "./dom.js";
import { rightsOn } from "./rights.js";

export async function page(context) {
  const who = await get("session");
  const place = h("div", {});
  const asked = fields([
    { name: "channel", label: "Channel" },
    { name: "queue", label: "Queue", kind: "number", most: 65535 },
    { name: "router", label: "Router" },
    { name: "space", label: "Space of cells" },
  ], Object.fromEntries(context.query));
  const look = async () => {
    const subject = Object.fromEntries(Object.entries(asked.read()).filter(([, value]) => value !== "" && value !== null && value !== undefined));
    context.setQuery(subject);
    const found = [...await rightsOn(subject)].sort();
    const about = Object.keys(subject).length > 0;
    fill(place, found.length ? h("p", { class: "row" }, found.map((each) => badge(each))) : quiet(about ? "You may do nothing with it." : "You have no right about everything; you may have some about a channel or a router."));
  };
  const wrong = h("p", { class: "wrong", role: "alert" });
  const show = async () => { try { await look(); fill(wrong); } catch (error) { fill(wrong, error.message); } };
  await show();
  return {
    name: "You",
    element: h("div", {}, title("You"),
      card(null, facts([["Client", who.client], ["Logged in", who.session ? "yes" : "no"], ["The session ends in", who.ends_in_s === null ? undefined : age(who.ends_in_s)]])),
      card("Rights", h("form", { onsubmit: (event) => { event.preventDefault(); show(); } }, h("div", { class: "fields" }, asked.elements), wrong, h("div", { class: "row end" }, h("button", {}, "Look"))),
        quiet("Without a name, these are the rights about everything."), place)),
  };
}
