// What one client asks and is told, while an operator looks.

import { get, post, remove } from "./api.js";
import { button, card, clock, count, encode, fill, h, quiet } from "./dom.js";

const KEPT = 1000;
const ARROWS = { in: "asks", out: "is told", end: "ends" };
const head = (line) => Object.entries(line.head).map(([key, value]) => `${key}=${value}`).join(" ");

/** A trace of a client: its `element`, and `refresh` brings it up to date. */
export function tracing(context, id, client) {
  const path = `clients/${encode(id)}/trace`;
  const lines = [];
  let last = 0;
  let running = false;
  const list = h("ol", { class: "log", "aria-label": "Trace", tabindex: "0" });
  const note = quiet("");
  const actions = h("div", { class: "row" });
  const element = card("Trace", actions, note, list);
  const draw = () => {
    fill(actions, running ? button("End the trace", end) : button("Trace 5 min", begin));
    fill(list, lines.slice(-300).reverse().map((line) => h("li", {}, h("time", {}, clock(line.at_ms)), h("span", {}, ARROWS[line.way], " ", h("b", {}, line.what)), h("span", {}, head(line)))));
    list.hidden = lines.length === 0;
    note.hidden = !running && lines.length === 0;
    fill(note, `${count(lines.length)} lines${running ? ", and it goes on" : ". It is over"}. Shown is what each command is about, never what messages say.`);
  };
  const begin = async () => {
    lines.length = 0;
    last = 0;
    running = await context.act(() => post(path, { seconds: 300 }), `${client} is traced for five minutes.`, { refreshes: false });
    draw();
  };
  const end = async () => {
    running = !(await context.act(() => remove(path), "The trace has ended.", { refreshes: false }));
    draw();
  };
  const refresh = async () => {
    if (!running) return;
    const found = await get(path, { after: last }).catch((error) => { if (error.status === 404) return null; throw error; });
    running = Boolean(found && found.running);
    if (found && found.lines.length) {
      last = found.lines[found.lines.length - 1].number;
      lines.push(...found.lines);
      lines.splice(0, Math.max(0, lines.length - KEPT));
    }
    draw();
  };
  draw();
  return { element, refresh, end: () => { if (running) remove(path).catch(() => {}); } };
}
