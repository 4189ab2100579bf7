// Routers and their bindings: as a drawing, and beside it as tables.

import { get, patch, put, remove } from "./api.js";
import { form, sure } from "./ask.js";
import { badge, button, card, encode, fill, h, link, plain, quiet, svg, table, title } from "./dom.js";
import { queueHash } from "./places.js";
import { may, rightsOn } from "./rights.js";
import { BINDING_KINDS, HTTP_METHODS, INTERACTIONS, ROUTE_METHODS } from "./tables.js";

const ROW = 34;
const path = (name) => `routers/${encode(name)}`;
const short = (text, most) => { const words = plain(text); return words.length > most ? `${words.slice(0, most - 1)}…` : words; };

/** Where a binding sends messages, in words. */
function target(binding) {
  if (binding.kind === "queue") return `${binding.target}/${binding.queue}`;
  if (binding.kind === "http") return `${(binding.http_method || "post").toUpperCase()} ${binding.target}`;
  return binding.kind === "tag" ? `tag ${binding.target}` : binding.target;
}

/** The width of a box, the room between two, and how many characters are in one: on a phone less. */
const small = matchMedia("(max-width: 720px)");
const sizes = () => (small.matches ? { wide: 130, gap: 46, most: 17 } : { wide: 230, gap: 110, most: 31 });

const box = (x, y, { wide, most }, words, note, kind) => svg("g", {},
  svg("rect", { x, y: y + 3, width: wide, height: ROW - 6, rx: 6, class: kind }),
  svg("text", { x: x + 10, y: y + ROW / 2 + 4.5 }, short(words, note ? most - 13 : most)),
  note && svg("text", { x: x + wide - 10, y: y + ROW / 2 + 4, class: "small", "text-anchor": "end" }, note));

/** The drawing; readers of screens have the tables. */
function drawing(routers) {
  let y = 8;
  const parts = [];
  const size = sizes();
  const { wide, gap } = size;
  for (const router of routers) {
    const bindings = router.bindings || [];
    const height = Math.max(1, bindings.length) * ROW;
    const middle = y + height / 2 - ROW / 2;
    const off = router.enabled ? "" : "off";
    parts.push(box(8, middle, size, router.name, wide > 200 ? router.method : "", `router ${off}`));
    bindings.forEach((binding, at) => {
      const from = [8 + wide, middle + ROW / 2];
      const to = [8 + wide + gap, y + at * ROW + ROW / 2];
      const half = (from[0] + to[0]) / 2 + 10;
      parts.push(svg("path", { class: off, d: `M${from[0]} ${from[1]} C${half} ${from[1]} ${half} ${to[1]} ${to[0] - 7} ${to[1]}` }));
      parts.push(svg("path", { class: "head", d: `M${to[0]} ${to[1]} l-8 -4 v8 z` }));
      parts.push(box(to[0], y + at * ROW, size, target(binding), "", binding.kind));
    });
    y += height + 14;
  }
  const width = 2 * (8 + wide) + gap;
  return h("div", { class: "drawing" }, svg("svg", { width, height: y, viewBox: `0 0 ${width} ${y}`, role: "img", "aria-label": "Routers and where they send messages; the tables have the same" }, parts));
}

const BINDING = [
  { name: "name", label: "Name", required: true },
  { name: "kind", label: "Kind", kind: "choice", choices: BINDING_KINDS, value: "queue" },
  { name: "target", label: "Target", required: true, help: "A channel, a tag, a URL, or @name:, @type: or an id of clients" },
  { name: "queue", label: "Queue", kind: "number", most: 65535, help: "Of kind queue" },
  { name: "http_method", label: "HTTP method", kind: "choice", choices: ["", ...HTTP_METHODS], help: "Of kind http" },
  { name: "content_type", label: "Content type", kind: "number", most: 65535, help: "Of kind direct" },
  { name: "method", label: "Method", kind: "choice", choices: ["", ...ROUTE_METHODS], help: "Of kind direct" },
  { name: "priority", label: "Priority", kind: "number", least: -2147483647, help: "The highest comes first" },
  { name: "interaction", label: "Asks for", kind: "choice", choices: INTERACTIONS },
];
/** Which fields only bindings of one kind have. */
const OWN = { queue: "queue", http_method: "http", content_type: "direct", method: "direct" };

export async function page(context) {
  const place = h("div", {});
  const create = () => form("Create a router", [{ name: "name", label: "Name", required: true }, { name: "method", label: "Method", kind: "choice", choices: ROUTE_METHODS }], "Create", async (given) => {
    await put(path(given.name), { method: given.method }, { headers: { "If-None-Match": "*" } });
    setTimeout(context.again);
  });
  const bind = (router) => form(`A binding of ${router.name}`, BINDING, "Add", async ({ name, ...given }) => {
    const values = Object.fromEntries(Object.entries(given).filter(([key]) => !OWN[key] || OWN[key] === given.kind));
    await put(`${path(router.name)}/bindings/${encode(name)}`, values, { headers: { "If-None-Match": "*" } });
    setTimeout(context.again);
  });
  const unbind = async (router, binding) => {
    if (await sure(`Remove the binding ${binding.name}?`, [`${router.name} sends nothing to `, h("b", {}, target(binding)), " any more."], "Remove")) {
      await context.act(() => remove(`${path(router.name)}/bindings/${encode(binding.name)}`), `The binding ${binding.name} is removed.`);
    }
  };
  const drop = async (router) => {
    if (await sure(`Remove the router ${router.name}?`, ["It goes with its ", h("b", {}, `${(router.bindings || []).length} bindings`), ". What is published to it is refused then."], "Remove")) {
      await context.act(() => remove(path(router.name)), `The router ${router.name} is removed.`);
    }
  };
  const enable = (router) => context.act(() => patch(path(router.name), { enabled: !router.enabled }), `${router.name} is ${router.enabled ? "disabled" : "enabled"}.`);

  const one = (router, can) => card([router.name, " ", router.enabled ? null : badge("disabled", "warn")],
    quiet(`Method ${router.method}.`),
    table(`Bindings of ${router.name}`, [
      ["Binding", (each) => each.name], ["Kind", (each) => each.kind],
      ["Target", (each) => (each.kind === "queue" ? link(queueHash(each.target, each.queue), target(each)) : target(each))],
      ["Priority", (each) => String(each.priority ?? 0), "n"], ["Asks for", (each) => each.interaction],
      can.has("manage-routers") && ["Action", (each) => button("Remove…", () => unbind(router, each), "danger small")],
    ].filter(Boolean), router.bindings || [], "It has no bindings: what is published to it is refused."),
    h("div", { class: "row end" }, can.has("publish") && h("a", { class: "button", href: `#/publish?to=router&name=${encode(router.name)}` }, "Publish"),
      can.has("manage-routers") && [button("Add a binding…", () => bind(router)), button(router.enabled ? "Disable" : "Enable", () => enable(router)), button("Remove router…", () => drop(router), "danger")]));
  let last = "";
  const again = () => { last = ""; refresh().catch((error) => context.tell(error.message, "error")); };
  const refresh = async () => {
    const { items } = await get("routers");
    const routers = await Promise.all(items.map(async (each) => (each.bindings ? each : { ...each, bindings: (await get(`${path(each.name)}/bindings`)).items })));
    const now = JSON.stringify(routers);
    if (now === last) return;
    last = now;
    const can = await Promise.all(routers.map((each) => rightsOn({ router: each.name })));
    fill(place, routers.length ? [card("Where messages go", drawing(routers)), routers.map((each, at) => one(each, can[at]))] : card(null, quiet("There is no router. A router passes each message on to queues, clients or URLs.")));
  };
  await refresh();
  small.addEventListener("change", again);
  return { name: "Routers", end: () => small.removeEventListener("change", again), element: h("div", {}, title("Routers", may("manage-routers") && button("Create…", create, "primary")), place), refresh, every: 4000 };
}
