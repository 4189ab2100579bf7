// A table of many rows, of which only those that are seen are in the document.
//
// Rows come in portions behind a cursor; the server keeps the order of a list for a while, so the
// next portion continues it, and a portion asked for again has the newest values of the same rows.

import { fill, h } from "./dom.js";

const PORTION = 200;
const AROUND = 8;
const narrow = matchMedia("(max-width: 720px)");

export class Rows {
  /**
   * @param options.caption what the rows are.
   * @param options.columns [key, heading, cell of a row, "n" for numbers, key to sort by].
   * @param options.widths the columns of the grid, as CSS has them.
   * @param options.load asks for a portion: ({limit, after} or {limit, sort, filter}) to {items, next, total}.
   * @param options.key of a row, a text.
   * @param options.open what Enter does, with a row.
   * @param options.picked called with the picked rows; no picking without it.
   * @param options.sort the first order; options.filter the first filter.
   * @param options.changed called with sort and filter when the user changes them.
   */
  constructor(options) {
    Object.assign(this, { sort: "", filter: "", empty: "Nothing here.", ...options });
    this.rows = [];
    this.portions = [];
    this.total = 0;
    this.at = 0;
    this.picks = new Map();
    this.turn = 0;
    this.note = h("p", { class: "quiet under", "aria-live": "off" });
    this.head = h("div", { role: "row", class: "vhead" });
    this.space = h("div", { class: "vspace", role: "rowgroup" });
    this.grid = this.view = h("div", { role: "grid", "aria-label": options.caption, class: "vtable", tabindex: "-1", onscroll: () => this.draw(), onkeydown: (event) => this.key(event) },
      h("div", { role: "rowgroup", class: "vtop" }, this.head), this.space);
    this.element = h("div", { class: "card flush" }, this.grid, this.note);
    this.resized = () => { this.drawHead(); this.draw(); };
    narrow.addEventListener("change", this.resized);
    this.drawHead();
  }

  get height() {
    return narrow.matches ? 46 + 25 * Math.ceil((this.columns.length - 1) / 2) : 38;
  }

  /** How much of the view rows have, below the head. */
  get seen() { return this.view.clientHeight - this.head.offsetHeight; }

  drawHead() {
    const cells = this.columns.map(([key, heading, , kind, sort]) => {
      const order = !sort ? null : this.sort === sort ? "ascending" : this.sort === `-${sort}` ? "descending" : "none";
      const inner = sort ? h("button", { type: "button", class: "sort", "data-key": `sort ${key}`, onclick: () => this.order(sort, kind) }, heading, order === "ascending" ? " ▲" : order === "descending" ? " ▼" : "") : heading;
      return h("div", { role: "columnheader", class: kind, "aria-sort": order }, inner);
    });
    fill(this.head, this.picked ? h("div", { role: "columnheader", class: "pick" }, h("span", { class: "unseen-caption" }, "Pick")) : [], cells);
    this.grid.style.setProperty("--columns", (this.picked ? "34px " : "") + this.widths);
  }

  order(sort, kind) {
    const down = kind === "n" ? this.sort !== `-${sort}` : this.sort === sort;
    this.sort = down ? `-${sort}` : sort;
    this.renew();
  }

  find(filter) {
    if (filter === this.filter) return Promise.resolve();
    this.filter = filter;
    return this.renew();
  }

  /** Begin again with the first portion, in the order of now. */
  async renew() {
    this.portions = [];
    this.at = 0;
    this.view.scrollTop = 0;
    this.drawHead();
    if (this.changed) this.changed(this.sort, this.filter);
    await this.more(true);
  }

  /** The first portion; a filter of the address that cannot be read is told, and no more. */
  async begin(tell) {
    try { await this.more(true); } catch (error) { if (error.status !== 400) throw error; tell(error.message, "error"); }
  }

  async more(first = false) {
    const mine = first ? ++this.turn : this.turn;
    if (!first && (this.loading || !this.next)) return;
    this.loading = true;
    try {
      const after = first ? undefined : this.next;
      const got = await this.portion(after);
      if (mine !== this.turn) return;
      if (first) { this.rows = []; this.old = false; }
      const there = got.items.filter((row) => !row.gone);
      this.portions.push({ after, from: this.rows.length, size: there.length });
      this.rows.push(...there);
      this.settle(got);
    } finally {
      if (mine === this.turn) this.loading = false;
    }
    this.draw();
  }

  /** A further page has the order and the filter of the first one. */
  portion(after) {
    return this.load(after === undefined ? { limit: PORTION, sort: this.sort, filter: this.filter } : { after, limit: PORTION });
  }

  settle(got) {
    this.next = got.next || null;
    this.total = got.total ?? this.rows.length;
    this.taken = Date.now();
  }

  /** Bring the values that are seen up to date; at the top the order, too. */
  async refresh() {
    if (this.loading) return;
    const top = Math.floor(this.view.scrollTop / this.height);
    const bottom = top + Math.ceil(this.seen / this.height);
    if (!this.portions.length || (top === 0 && bottom < PORTION && this.at < PORTION)) {
      const held = this.rows[this.at] && this.key_(this.rows[this.at]);
      this.portions = [];
      await this.more(true);
      const again = this.rows.findIndex((row) => this.key_(row) === held);
      if (again >= 0 && again !== this.at) { this.at = again; this.draw(); }
      return;
    }
    const mine = this.turn;
    const places = new Map(this.rows.map((row, at) => [this.key_(row), at]));
    for (const portion of this.portions) {
      if (portion.after === undefined || portion.from > bottom || portion.from + portion.size < top) continue;
      try {
        const got = await this.portion(portion.after);
        if (mine !== this.turn) return;
        for (const row of got.items) {
          const at = places.get(this.key_(row));
          if (at !== undefined) this.rows[at] = row.gone ? { ...this.rows[at], gone: true } : row;
        }
        this.taken = Date.now();
      } catch (error) {
        if (!error.status) throw error;
        this.old = true; // the server keeps this order no longer
      }
    }
    this.draw();
  }

  key_(row) { return this.keyOf(row); }

  draw() {
    const height = this.height;
    const rows = this.rows;
    const seen = Math.ceil(this.seen / height) || 1;
    const from = Math.max(0, Math.floor(this.view.scrollTop / height) - AROUND);
    const to = Math.min(rows.length, from + seen + 2 * AROUND);
    this.space.style.height = `${rows.length * height}px`;
    this.grid.setAttribute("aria-rowcount", String(this.total + 1));
    const had = this.space.contains(document.activeElement);
    const drawn = [];
    for (let at = from; at < to; at += 1) drawn.push(this.row(rows[at], at, height));
    fill(this.space, drawn.length ? drawn : h("div", { role: "row", class: "empty" }, h("div", { role: "gridcell" }, this.loading ? "Loading…" : this.empty)));
    if (had && !this.space.contains(document.activeElement)) this.focus();
    const parts = [rows.length < this.total ? `${rows.length.toLocaleString("en-US")} of ${this.total.toLocaleString("en-US")} rows are here; more come as you scroll` : `${this.total.toLocaleString("en-US")} rows`];
    if (this.picked) parts.push(`${this.picks.size} picked`);
    if (this.old) parts.push("the order is old");
    this.note.textContent = parts.join(" · ");
    if (this.next && to > rows.length - PORTION / 2) this.more().catch(() => {});
  }

  row(row, at, height) {
    const key = this.key_(row);
    const cells = this.columns.map(([, heading, cell, kind], place) => {
      const inner = cell(row);
      return h("div", { role: "gridcell", class: `${kind || ""} ${place ? "" : "head"}`, "data-label": heading }, h("span", { class: "cell" }, inner === null || inner === undefined || inner === "" ? "–" : inner));
    });
    const pick = this.picked && h("div", { role: "gridcell", class: "pick" }, h("input", { type: "checkbox", tabindex: "-1", "aria-label": `Pick ${key}`, checked: this.picks.has(key), onclick: (event) => { event.stopPropagation(); this.pick(row); } }));
    const element = h("div", {
      role: "row", "aria-rowindex": String(at + 2), "aria-selected": this.picked ? String(this.picks.has(key)) : null,
      class: `vrow ${row.gone ? "gone" : this.mark ? this.mark(row) : ""}`, tabindex: at === this.at ? "0" : "-1", "data-key": `row ${key}`,
      onclick: (event) => { if (event.target.closest("a, button, input")) return; this.at = at; this.open(row); },
      onfocus: () => { this.at = at; },
    }, pick, cells);
    element.style.top = `${at * height}px`;
    element.style.height = `${height}px`;
    return element;
  }

  pick(row) {
    const key = this.key_(row);
    if (this.picks.has(key)) this.picks.delete(key); else this.picks.set(key, row);
    this.picked([...this.picks.values()]);
    this.draw();
  }

  unpick() {
    this.picks.clear();
    if (this.picked) this.picked([]);
    this.draw();
  }

  /** Move to another row. */
  go(at) {
    this.at = Math.max(0, Math.min(this.rows.length - 1, at));
    const top = this.at * this.height;
    const view = this.view;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + this.height > view.scrollTop + this.seen) view.scrollTop = top + this.height - this.seen;
    this.draw();
    this.focus();
  }

  focus() {
    const row = this.space.querySelector("[tabindex='0']");
    if (row) row.focus({ preventScroll: true });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !event.target.classList.contains("vrow")) return;
    const step = Math.max(1, Math.floor(this.seen / this.height) - 1);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: step, PageUp: -step, Home: -this.rows.length, End: this.rows.length };
    if (event.key in moves) this.go(this.at + moves[event.key]);
    else if (event.key === "Enter") this.open(this.rows[this.at]);
    else if (event.key === "x" && this.picked) this.pick(this.rows[this.at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** No part of the document any more. */
  end() { narrow.removeEventListener("change", this.resized); }
}

/** A field by which rows are filtered, with a word on how. */
export function filterField(rows, example, help) {
  let timer = 0;
  const wrong = h("span", { class: "wrong", role: "alert" });
  const field = h("input", { type: "search", name: "filter", placeholder: example, title: help, "aria-label": "Filter", autocomplete: "off", spellcheck: "false", value: rows.filter,
    oninput: () => { clearTimeout(timer); timer = setTimeout(async () => {
      try { await rows.find(field.value.trim()); fill(wrong); } catch (error) { fill(wrong, error.message); }
    }, 300); } });
  return h("div", { class: "filter" }, field, wrong);
}
