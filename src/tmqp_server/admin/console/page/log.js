// The last lines of the log, how much is logged, and when the certificate expires.

import { get, post, put } from "./api.js";
import { age, badge, button, card, clock, count, facts, fill, h, moment, quiet, title } from "./dom.js";
import { may } from "./rights.js";

const LEVELS = ["debug", "info", "warning", "error"];
const KEPT = 1000;
const SOON_S = 14 * 86400;

const kindOf = (level) => (level === "warning" ? "warn" : LEVELS.indexOf(level) < 2 && LEVELS.includes(level) ? "" : "error");

/** When the certificate expires, in words; a badge if that is soon. */
function expiry(tls) {
  if (tls.certificate_expires_at_ms === null) return tls.enabled ? "its certificate cannot be read" : "off: connections are in the clear";
  const left = (tls.certificate_expires_at_ms - Date.now()) / 1000;
  return [moment(tls.certificate_expires_at_ms), " ", left < 0 ? badge("expired", "error") : left < SOON_S ? badge(`in ${age(left)}`, "warn") : `in ${age(left)}`];
}

export async function page(context) {
  const lines = [];
  let last = 0;
  const manages = may("manage-server");
  const list = h("ol", { class: "log", "aria-label": "Log", tabindex: "0" });
  const none = h("p", { class: "empty" }, "No line of the log is kept.");
  const note = h("p", { class: "quiet under", role: "status", "aria-live": "off" });
  const safety = h("div", {});
  const choice = (name, label, run) => h("select", { name, "aria-label": label, onchange: run }, LEVELS.map((each) => h("option", { value: each }, each)));
  const least = choice("least", "Lines shown", () => draw());
  const find = h("input", { type: "search", name: "text", placeholder: "Text in the line", "aria-label": "Filter", oninput: () => draw() });
  const level = choice("level", "What is logged", () => context.act(() => put("server/log-level", { level: level.value }), `From now on ${level.value} and what is more important is logged, until the configuration is read again`));
  const draw = () => {
    const text = find.value.toLowerCase();
    const rank = LEVELS.indexOf(least.value);
    const seen = lines.filter((each) => (LEVELS.indexOf(each.level) >= rank || !LEVELS.includes(each.level)) && (!text || `${each.logger} ${each.text}`.toLowerCase().includes(text)));
    fill(list, seen.slice(-300).reverse().map((each) => h("li", {}, h("time", {}, clock(each.at_ms)), h("span", {}, badge(each.level, kindOf(each.level))), h("span", {}, each.text, each.exception ? ` (${each.exception})` : ""))));
    none.hidden = seen.length > 0;
    fill(note, `${count(seen.length)} of ${count(lines.length)} lines`);
  };
  const refresh = async () => {
    const [log, logged, tls] = await Promise.all([get("logs", { after: last, max: KEPT }), get("server/log-level"), get("server/tls")]);
    if (log.last < last) { lines.length = 0; last = 0; await refresh(); return; } // it was started again
    last = log.last;
    lines.push(...log.items);
    lines.splice(0, Math.max(0, lines.length - KEPT));
    if (document.activeElement !== level) level.value = logged.level;
    fill(safety, facts([["Certificate", expiry(tls)], ["At least", tls.enabled ? `TLS ${tls.minimum_version}` : undefined], ["Certificates of clients", tls.enabled ? tls.client_certificates : undefined]]),
      manages && tls.enabled && button("Read the certificate again", () => context.act(() => post("server/tls"), "The certificate was read again; connections keep the one they have")));
    draw();
  };
  await refresh();
  return {
    name: "Log",
    element: h("div", {}, title("Log"), h("div", { class: "row bar-of-views" }, h("label", {}, "Show ", least), h("div", { class: "filter" }, find), manages && h("label", {}, "Log ", level)),
      h("section", { class: "card flush" }, none, list, note), quiet(`The last ${count(KEPT)} lines are here; the log itself is where the server writes it.`), card("TLS", safety)),
    refresh,
    every: 2000,
  };
}
