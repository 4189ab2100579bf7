// The frame around the pages: who is logged in, which page is shown, how often it is brought up to
// date, and what is said when the server does not answer.

import { Problem, session } from "./api.js";
import { sure } from "./ask.js";
import { redraw } from "./chart.js";
import { button, card, fill, h, link, quiet, title } from "./dom.js";
import { enter, leave, may } from "./rights.js";
import { page as audit } from "./audit.js";
import { page as channels } from "./channels.js";
import { page as clients } from "./clients.js";
import { page as events } from "./events.js";
import { page as limits } from "./limits.js";
import { page as log } from "./log.js";
import { page as login } from "./login.js";
import { page as messages } from "./messages.js";
import { page as nodes } from "./nodes.js";
import { page as overview } from "./overview.js";
import { page as publish } from "./publish.js";
import { page as queue } from "./queue.js";
import { page as queues } from "./queues.js";
import { page as routers } from "./routers.js";
import { page as slow } from "./slow.js";
import { page as storage } from "./storage.js";
import { page as you } from "./you.js";

/** Pages in the order of the menu: [path, name, key behind `g`, the right that it needs, page]. */
const PAGES = [
  ["overview", "Overview", "o", "", overview],
  ["queues", "Queues", "q", "see-channel", queues],
  ["channels", "Channels", "h", "see-channel", channels],
  ["publish", "Publish", "p", "push", publish],
  ["routers", "Routers", "r", "see-routers", routers],
  ["clients", "Clients", "c", "see-clients", clients],
  ["nodes", "Nodes", "n", "see-nodes", nodes],
  ["events", "Events", "e", "subscribe", events],
  ["log", "Log", "d", "see-server", log],
  ["audit", "Audit", "a", "see-audit", audit],
  ["storage", "Storage", "s", "see-server", storage],
  ["slow", "Slow", "w", "see-server", slow],
  ["limits", "Limits", "l", "see-server", limits],
  ["you", "You", "y", "", you],
];

const main = document.getElementById("main");
const notice = document.getElementById("notice");
const nav = document.getElementById("nav");
let shown = null;
let turn = 0;
let timer = 0;
let lost = false;
let since = 0;

// --- What is said above a page ------------------------------------------------------------------

function tell(text, kind = "good") {
  fill(notice, text ? h("p", { class: `banner ${kind}` }, text) : []);
  if (text && kind === "good") setTimeout(() => { if (notice.textContent === text) fill(notice); }, 6000);
}

const sentence = (error) => {
  if (error.status === 403) return "You have no right to see this.";
  return error.message || String(error);
};

function answered() {
  if (!lost) return;
  lost = false;
  tell("The server answers again.");
}

function failed(error) {
  if (!(error instanceof Problem) || error.status) return false;
  if (!lost) since = Date.now();
  lost = true;
  tell(`The server does not answer, since ${new Date(since).toLocaleTimeString("sv-SE")}. It is asked again every two seconds.`, "error");
  return true;
}

// --- Pages --------------------------------------------------------------------------------------

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try { parts = path.split("/").filter(Boolean).map(decodeURIComponent); } catch { parts = []; }
  return { parts, query: new URLSearchParams(query || "") };
}

/** State stands in the address, so that it can be kept and sent. */
function setQuery(values) {
  const kept = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value) kept.set(key, value);
  const text = kept.toString();
  history.replaceState(null, "", `${location.hash.split("?")[0]}${text ? `?${text}` : ""}`);
}

function pageOf(parts) {
  if (parts[0] === "queues" && parts.length === 4 && parts[3] === "messages") return [messages, "queues"];
  if (parts[0] === "queues" && parts.length === 3) return [queue, "queues"];
  const found = PAGES.find(([path]) => path === (parts[0] || "overview"));
  return found ? [found[4], found[0]] : [null, ""];
}

const context = { go: (hash) => { location.hash = hash; }, tell, setQuery, again: () => refresh(), act };

/**
 * Do something that changes the server, and say how it ended; true if it was done.  Then the page is
 * brought up to date, unless what it is about is no more.
 */
async function act(run, done, { refreshes = true } = {}) {
  try {
    await run();
  } catch (error) {
    if (error.status === 401) await show();
    else if (!failed(error)) tell(sentence(error), "error");
    return false;
  }
  tell(done);
  if (refreshes) await refresh();
  return true;
}

async function show() {
  const mine = ++turn;
  clearTimeout(timer);
  if (shown && shown.end) shown.end();
  shown = null;
  const { parts, query } = place();
  let [page, name] = pageOf(parts);
  try {
    if (!session.loggedIn && !(await enter())) { page = login; name = ""; }
    if (mine !== turn) return;
    frame(name);
    if (!page) {
      fill(main, title("There is no such page"), quiet("The address names no page of the console. ", link("#/overview", "Overview")));
      return;
    }
    const made = await page({ ...context, parts, query, entered: show });
    if (mine !== turn) { if (made.end) made.end(); return; }
    shown = made;
    fill(main, made.element);
    document.title = `${made.name} - tmqp`;
    if (made.drawn) made.drawn();
    answered();
  } catch (error) {
    if (mine !== turn) return;
    if (error.status === 401) { session.loggedIn = false; show(); return; }
    if (failed(error)) fill(main, quiet("This page is shown as soon as the server answers."));
    else fill(main, title(error.status === 404 ? "It is not there" : "This page cannot be shown"), card(null, h("p", {}, sentence(error)), button("Try again", show)));
    document.title = "tmqp";
  }
  later(mine);
}

function later(mine) {
  clearTimeout(timer);
  const every = lost ? 2000 : shown && shown.refresh ? shown.every || 2000 : 0;
  if (every) timer = setTimeout(async () => { if (mine === turn) { await refresh(); later(mine); } }, every);
}

/** Bring the page up to date; never while it is hidden or a question is open. */
async function refresh() {
  const mine = turn;
  if (document.hidden || document.getElementById("question").open) return;
  if (!shown) { if (lost) await show(); return; }
  try {
    // What a page last had may be of a server that has been started again since.
    if (lost) { session.loggedIn = false; if (!(await enter())) { answered(); await show(); return; } }
    if (shown.refresh) await shown.refresh();
    if (mine === turn) answered();
  } catch (error) {
    if (mine !== turn || error.name === "AbortError") return;
    if (error.status === 401) { session.loggedIn = false; await show(); } else if (!failed(error)) tell(sentence(error), "error");
  }
}

function frame(name) {
  const inside = session.loggedIn;
  nav.hidden = !inside;
  document.getElementById("menu").hidden = !inside;
  document.getElementById("leave").hidden = !session.canLeave;
  document.body.classList.remove("menu");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  fill(document.getElementById("who"), inside ? session.name || "not logged in" : "");
  fill(nav, PAGES.filter(([, , , right]) => !right || may(right)).map(([path, words, key]) => h("a", { href: `#/${path}`, "aria-current": path === name ? "page" : null }, words, h("kbd", { "aria-hidden": "true" }, key))));
}

// --- Theme, keys, menu --------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];
const theme = document.getElementById("theme");
const recall = () => { try { return localStorage.getItem("tmqp-theme"); } catch { return null; } };
function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  theme.textContent = `Theme: ${name}`;
  try { localStorage.setItem("tmqp-theme", name); } catch { /* storage may be switched off */ }
  redraw();
}
setTheme(THEMES.includes(recall()) ? recall() : "auto");
theme.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(recall() || "auto") + 1) % 3]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

const menu = document.getElementById("menu");
menu.addEventListener("click", () => menu.setAttribute("aria-expanded", String(document.body.classList.toggle("menu"))));
document.getElementById("leave").addEventListener("click", async () => { await leave().catch(failed); show(); });

function tellKeys() {
  const keys = [...PAGES.map(([, words, key]) => [`g ${key}`, words]), ["/", "Filter"], ["↑ ↓ j k", "Move in a table"], ["Enter", "Open the row"], ["x", "Pick the row"], ["Esc", "Close a question"], ["?", "This list"]];
  sure("Keys", h("span", { class: "keys" }, keys.map(([key, words]) => h("span", {}, h("kbd", {}, key), ` ${words}`))), "Close", { danger: false });
}
document.getElementById("keys").addEventListener("click", tellKeys);

let behind = false;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("question").open) return;
  if (event.target instanceof Element && event.target.closest("input, textarea, select")) return;
  if (behind) {
    behind = false;
    const found = PAGES.find(([, , key, right]) => key === event.key && (!right || may(right)));
    if (found) { location.hash = `#/${found[0]}`; event.preventDefault(); }
  } else if (event.key === "g") {
    behind = true;
  } else if (event.key === "/") {
    const field = main.querySelector("input[type=search]");
    if (field) { field.focus(); event.preventDefault(); }
  } else if (event.key === "?") tellKeys();
});

document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", async () => { await show(); main.focus({ preventScroll: true }); scrollTo(0, 0); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
show();
