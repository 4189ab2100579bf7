// Publish messages: to a queue or through a router.

import { post } from "./api.js";
import { fields } from "./ask.js";
import { card, encode, fill, h, title } from "./dom.js";
import { queuePath, readPlace } from "./places.js";
import { may } from "./rights.js";

const MOST = 1000;

/** A text as the bytes of UTF-8, which is how the fields of a request are read. */
const utf8 = (text) => String.fromCharCode(...new TextEncoder().encode(text));

/** Lines `Name: value` as pairs; throws what is wrong with one. */
function headersOf(text) {
  return (text || "").split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`A header is written as Name: value, not ${line}`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

export async function page(context) {
  const toRouter = may("publish");
  const made = fields([
    { name: "to", label: "To", kind: "choice", choices: toRouter ? ["queue", "router"] : ["queue"] },
    { name: "name", label: "Queue or router", required: true, example: "orders/1", help: "A queue as CHANNEL/NUMBER, a router by its name" },
    { name: "type", label: "Content type", example: "application/json" },
    { name: "priority", label: "Priority", kind: "choice", choices: ["normal", "high"] },
    { name: "delay_ms", label: "Delay (ms)", kind: "number" },
    { name: "expires_ms", label: "Expires after (ms)", kind: "number" },
    { name: "count", label: "How many", kind: "number", least: 1, most: MOST, value: 1, help: `At most ${MOST}` },
    { name: "headers", label: "Headers, one a line", kind: "long", rows: 3, example: "Country: fr" },
    { name: "body", label: "Body", kind: "long", rows: 10, keep: true },
  ], Object.fromEntries(context.query));
  made.elements.slice(-2).forEach((each) => each.classList.add("wide"));
  const said = h("p", { role: "status", "aria-live": "polite" });
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const values = made.read();
    const yes = form.querySelector("button");
    yes.disabled = true;
    let done = 0;
    try {
      const headers = Object.fromEntries(headersOf(values.headers).map(([name, value]) => [`Tmqp-Header-${name}`, utf8(value)]));
      const place = values.to === "router" ? null : readPlace(values.name);
      const path = place ? `${queuePath(place.channel, place.queue)}/messages` : `routers/${encode(values.name)}/messages`;
      const query = { priority: values.priority === "high" ? "high" : undefined, delay_ms: values.delay_ms, expires_ms: values.expires_ms };
      for (; done < (values.count || 1); done += 1) {
        await post(path, values.body, { query, headers, type: values.type || "text/plain; charset=utf-8" });
        if (done % 20 === 19) fill(said, `${done + 1} of ${values.count} are published…`);
      }
      fill(said, h("span", { class: "badge good" }, "done"), `${done === 1 ? "The message is" : `${done} messages are`} published to ${values.name}.`);
    } catch (error) {
      fill(said, h("span", { class: "wrong" }, `${done ? `${done} are published; then: ` : ""}${error.message}`));
    }
    yes.disabled = false;
  } }, h("div", { class: "fields" }, made.elements), h("div", { class: "row end" }, said, h("button", { class: "primary" }, "Publish")));
  return { name: "Publish", element: h("div", {}, title("Publish"), card(null, form)) };
}
