// Charts of the last ten minutes.  The server keeps no history: the browser does, while it looks.


import { bytes, count, h, rate } from "./dom.js";

const KEPT_S = 600;
const charts = new Set();

/** Values over time, and their rates.  It lives as long as the page of the browser. */
export class History {
  constructor() {
    this.times = [];
    this.values = {};
    this.last = null;
  }

  /** What grows (`totals`, of which rates are kept) and what is (`levels`), at a time in seconds. */
  add(now, totals, levels = {}) {
    const step = this.last ? now - this.last.now : 0;
    if (this.last && step <= 0) return;
    const row = { ...levels };
    for (const [name, value] of Object.entries(totals)) {
      const before = this.last && this.last.totals[name];
      // A total that fell began again with the server.
      row[name] = before === undefined || before === null || value < before ? null : (value - before) / step;
    }
    this.last = { now, totals };
    const kept = this.times.findIndex((each) => each >= now - KEPT_S);
    if (kept > 0) {
      this.times.splice(0, kept);
      for (const each of Object.values(this.values)) each.splice(0, kept);
    }
    this.times.push(now);
    for (const [name, value] of Object.entries(row)) {
      (this.values[name] ||= new Array(this.times.length - 1).fill(null)).push(value);
    }
    for (const each of Object.values(this.values)) if (each.length < this.times.length) each.push(null);
  }

  /** The newest value; null if there is none. */
  now(name) {
    const found = this.values[name];
    return found && found.length ? found.at(-1) : null;
  }
}

/** What the axis of time shows: what is known, a minute at least and ten at most. */
function span(history) {
  const now = history.times.at(-1) ?? Date.now() / 1000;
  return [Math.min(now - 60, Math.max(now - KEPT_S, history.times[0] ?? now)), now];
}

/** A colour of the palette; a canvas must be told which of the two it is. */
function color(name) {
  const root = document.documentElement;
  const value = getComputedStyle(root).getPropertyValue(name).trim();
  const both = value.match(/^light-dark\((\S+), *(\S+)\)$/);
  const theme = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  return both ? both[theme === "dark" ? 2 : 1] : value;
}
/** Steps of an axis of whole numbers, and of one of bytes. */
const STEPS = { count: [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((each) => each * 10 ** power)), bytes: [...Array(50).keys()].map((power) => 2 ** power) };
const WORDS = { rate, count, bytes };

/**
 * A chart.
 *
 * @param heading what it shows.
 * @param history where the values are.
 * @param lines [name, label, custom property of its colour] each.
 * @param words how numbers are written: "rate", "count" or "bytes".
 */
export function chart(heading, history, lines, words = "count") {
  const say = WORDS[words];
  const legend = h("div", { class: "legend" });
  const place = h("div", { class: "plot" });
  const element = h("section", { class: "card chart" }, h("h2", {}, heading), legend, place);
  const numbers = lines.map(([, label, tone]) => {
    const value = h("b", {}, "–");
    legend.append(h("span", { class: "key" }, h("i", { class: `swatch ${tone}` }), `${label} `, value));
    return value;
  });
  const state = { plot: null, width: 0 };

  const make = () => {
    if (state.plot) state.plot.destroy();
    state.width = place.clientWidth;
    const line = color("--line");
    const axis = { stroke: color("--quiet"), grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    state.plot = new uPlot({
      width: state.width, height: 150, legend: { show: false }, cursor: { show: false }, padding: [8, 28, 0, 0],
      scales: { x: { time: true, range: () => span(history) }, y: { range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.15)] } },
      axes: [{ ...axis, space: 70, size: 28, values: (_, ticks) => ticks.map((each) => new Date(each * 1000).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit", second: each % 60 ? "2-digit" : undefined })) }, { ...axis, size: 54, space: 34, incrs: STEPS[words], values: (_, ticks) => ticks.map((each) => say(each)) }],
      series: [{}, ...lines.map(([, label, tone]) => ({ label, stroke: color(`--${tone}`), width: 2, fill: `${color(`--${tone}`)}18`, points: { show: () => history.times.length < 3 }, spanGaps: false }))],
    }, data(), place);
  };
  const data = () => [history.times, ...lines.map(([name]) => history.values[name] || history.times.map(() => null))];
  const draw = () => {
    lines.forEach(([name], at) => { numbers[at].textContent = say(history.now(name)); });
    if (!element.isConnected || !place.clientWidth) return;
    if (!state.plot || state.width !== place.clientWidth) make(); else state.plot.setData(data());
  };
  const made = { element, draw, renew: () => { if (state.plot) make(); }, end: () => { charts.delete(made); if (state.plot) state.plot.destroy(); } };
  charts.add(made);
  return made;
}

/** Draw all charts again: the colours have changed, or the window. */
export const redraw = () => { for (const each of charts) each.renew(); };
addEventListener("resize", () => { for (const each of charts) each.draw(); });
