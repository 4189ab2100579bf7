// What happens, as it happens.

import { follow } from "./api.js";
import { button, clock, count, encode, fill, h, link, quiet, title } from "./dom.js";
import { queueHash } from "./places.js";
import { CHANNEL_EVENTS, SERVER_EVENTS } from "./tables.js";

const KEPT = 1000;
const WAIT_MS = 2000;

/** The values of an event in one line; a queue is a link. */
function words(data) {
  const parts = Object.entries(data).filter(([, value]) => value !== null && value !== "" && typeof value !== "object").map(([key, value]) => `${key} ${value}`);
  const channel = data.channel ?? data.Channel;
  const queue = data.queue ?? data.QueueId ?? data.Id;
  return [channel !== undefined && Number.isInteger(queue) ? [link(queueHash(channel, queue), `${channel}/${queue}`), " "] : [], parts.join(" · ")];
}

export async function page(context) {
  const heard = [];
  let missed = 0;
  let paused = false;
  let stopped = true;
  let waits = false;
  const aborter = new AbortController();
  const list = h("ol", { class: "log", "aria-label": "Events", tabindex: "0" });
  const none = h("p", { class: "empty" }, "Nothing has happened since the page was opened.");
  const note = h("p", { class: "quiet under", role: "status", "aria-live": "off" });
  const kind = h("select", { "aria-label": "Kind of event", onchange: () => draw() }, ["all", ...SERVER_EVENTS, ...CHANNEL_EVENTS].map((each) => h("option", { value: each }, each)));
  const find = h("input", { type: "search", name: "text", placeholder: "Text in the event", "aria-label": "Filter", oninput: () => draw() });
  kind.value = context.query.get("kind") || "all";

  const channel = context.query.get("channel") || "";
  const about = h("input", { name: "channel", placeholder: "Channel", "aria-label": "Channel", value: channel, autocomplete: "off", spellcheck: "false" });
  const line = (each) => h("li", {}, h("time", {}, clock(each.at)), h("span", {}, each.kind), h("span", {}, words(each.data)));
  const draw = () => {
    waits = false;
    if (paused) return;
    const text = find.value.toLowerCase();
    const seen = heard.filter((each) => (kind.value === "all" || each.kind === kind.value) && (!text || JSON.stringify(each.data).toLowerCase().includes(text)));
    fill(list, seen.slice(-300).reverse().map(line));
    none.hidden = seen.length > 0;
    fill(note, `${count(heard.length)} kept${missed ? `, ${count(missed)} let go` : ""}${stopped ? " · not connected" : " · connected"}`);
  };
  const soon = () => { if (!waits) { waits = true; setTimeout(draw, 100); } };
  const hear = (name, data) => {
    if (name === "end") return;
    heard.push({ at: Date.now(), kind: name, data });
    if (heard.length > KEPT) { heard.shift(); missed += 1; }
    soon();
  };
  const run = async () => {
    while (!aborter.signal.aborted) {
      try {
        await follow("events", { kind: (channel ? [...SERVER_EVENTS, ...CHANNEL_EVENTS] : SERVER_EVENTS).join(","), channel }, aborter.signal, hear, () => { stopped = false; soon(); });
      } catch (error) {
        if (error.name === "AbortError") return;
        if (error.status) { context.tell(error.message, "error"); if (error.status === 401) context.again(); return; }
      }
      stopped = true;
      soon();
      await new Promise((done) => { setTimeout(done, WAIT_MS); });
    }
  };
  const pause = button("Pause", () => {
    paused = !paused;
    fill(pause, paused ? "Go on" : "Pause");
    draw();
  });
  draw();
  return {
    name: "Events",
    element: h("div", {}, title("Events", pause, button("Clear the list", () => { heard.length = 0; missed = 0; draw(); })),
      h("form", { class: "row bar-of-views", onsubmit: (event) => { event.preventDefault(); context.go(`#/events${about.value ? `?channel=${encode(about.value)}` : ""}`); } }, about, h("button", {}, "Follow"), kind, h("div", { class: "filter" }, find)), h("section", { class: "card flush" }, none, list, note), quiet(channel ? `Of the channel ${channel}, and of the server. ` : "Of the server: clients, channels and nodes. Name a channel to hear who joins it and what becomes of its queues. ", "What happened before the page was opened is not here.")),
    drawn: () => { run(); },
    end: () => aborter.abort(),
  };
}
