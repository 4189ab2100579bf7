// The page of nsqadmin: reads the API, draws tables, asks before it changes something.
// Text from outside reaches the document as text nodes and attributes only, never as markup.

const BASE = document.documentElement.dataset.base;
const main = document.getElementById("main");
const notice = document.getElementById("notice");
let settings = { lookupds: [], admin: true, user: "", graphite: null, version: "" };
let filter = "";
let turn = 0;
let timer = 0;
let good = "";
const counts = new Map();

// --- Small helpers ---------------------------------------------------------------------------

const encode = encodeURIComponent;
const number = (value) => Number(value || 0).toLocaleString("en-US");

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const link = (path, text) => h("a", { href: BASE + path, "data-link": true }, text);
const topicPath = (topic) => `topics/${encode(topic)}`;
const channelPath = (topic, channel) => `${topicPath(topic)}/${encode(channel)}`;
const nodePath = (node) => `nodes/${encode(node)}`;
const badge = (text, kind) => h("span", { class: `badge ${kind || ""}` }, text);
const paused = (row) => (row.paused ? [" ", badge("paused", "warn")] : []);

function age(seconds) {
  if (!seconds) return "";
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    if (seconds >= size || (unit === "s" && !parts.length)) parts.push(Math.floor(seconds / size) + unit);
    seconds %= size;
  }
  return parts.slice(0, 2).join(" ");
}

function time(nanoseconds) {
  if (nanoseconds >= 1e9) return (nanoseconds / 1e9).toFixed(2) + "\u00a0s";
  if (nanoseconds >= 1e6) return (nanoseconds / 1e6).toFixed(1) + "\u00a0ms";
  return (nanoseconds / 1e3).toFixed(0) + "\u00a0µs";
}

function latency(row) {
  const percentiles = (row.e2e_processing_latency || {}).percentiles || [];
  return percentiles.map((each) => `${+(each.quantile * 100).toFixed(2)}\u00a0%:\u00a0${time(each.average)}`).join(", ");
}

// Messages per second: of graphite if there is one, else between two refreshes.
function rate(key, total) {
  const now = performance.now();
  const before = counts.get(key);
  if (!before || total < before.total) {
    counts.set(key, { total, at: now, rate: null });
    return "…";
  }
  if (now - before.at > 900) {
    before.rate = ((total - before.total) * 1000) / (now - before.at);
    before.total = total;
    before.at = now;
  }
  return before.rate === null ? "…" : before.rate.toFixed(before.rate < 100 ? 1 : 0);
}

// --- Graphite --------------------------------------------------------------------------------

const COUNTERS = new Set(["message_count", "requeue_count", "timeout_count"]);

function target(kind, metric, node, topic, channel) {
  const graphite = settings.graphite;
  const host = node === "*" ? "*" : node.replace(/[.:]/g, "_");
  const prefix = graphite.prefix.replace("%s", host);
  const key = `${prefix ? prefix + "." : ""}topic.${topic}.${channel ? `channel.${channel}.` : ""}${metric}`;
  const full = (COUNTERS.has(metric) ? graphite.counter : graphite.gauge).replace("%s", key);
  return kind === "rate" ? `sumSeries(${full})` : `summarize(sumSeries(${full}),"${graphite.interval}sec","avg")`;
}

function graph(metric, node, topic, channel) {
  if (!settings.graphite) return null;
  const query = new URLSearchParams({
    target: target("graph", metric, node, topic, channel), from: "-2hours", width: "120", height: "20",
    hideGrid: "true", hideLegend: "true", hideAxes: "true", bgcolor: "00000000", margin: "0",
  });
  const base = settings.graphite.url ? settings.graphite.url + "/" : BASE;
  return h("img", { src: `${base}render?${query}`, alt: `${metric} over two hours`, width: 120, height: 20 });
}

function rateCell(key, row, topic, channel) {
  if (!settings.graphite) return rate(key, row.message_count);
  const cell = h("span", {}, "…");
  const query = new URLSearchParams({ metric: "rate", target: target("rate", "message_count", row.node, topic, channel) });
  ask("GET", `api/graphite?${query}`).then((answer) => { cell.textContent = answer.rate; }, () => { cell.textContent = "N/A"; });
  return cell;
}

// --- Tables ----------------------------------------------------------------------------------

// A column: [label, number?, cell(row), title].  The first cell is the head of a stacked row.
function table(columns, rows, options = {}) {
  if (!rows.length) return h("div", { class: "card empty" }, options.empty || "Nothing here.");
  const line = (row) => h("tr", {}, columns.map(([label, isNumber, cell], place) => {
    const content = cell(row);
    const isEmpty = content === "" || (Array.isArray(content) && !content.length);
    const kind = [isNumber ? "n" : "", place ? "" : "head", isEmpty ? "none" : ""].join(" ").trim();
    return h("td", { "data-label": label, class: kind || null }, h("div", {}, content));
  }));
  const heads = columns.map(([label, isNumber, , title]) => h("th", { scope: "col", class: isNumber ? "n" : null, title }, label));
  return h("div", { class: "card" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption || "Table" },
    h("table", { class: "stacks" },
      h("caption", { class: "skip" }, options.caption || ""),
      h("thead", {}, h("tr", {}, heads)),
      h("tbody", {}, rows.map(line)),
      options.total ? h("tfoot", {}, line(options.total)) : null)));
}

const isTotal = (row) => row.node === "*";
const nodeColumn = ["NSQd Host", false, (row) => (isTotal(row) ? "Total" : [link(nodePath(row.node), row.hostname || row.node), paused(row), row.hostname ? h("div", { class: "quiet under" }, row.node) : null])];
const count = (label, name, title) => [label, true, (row) => number(row[name]), title];

function graphed(label, name, title) {
  return [label, true, (row) => [number(row[name]), isTotal(row) ? graph(name, "*", row.topic_name, row.channel_name) : null], title];
}

const memoryColumn = ["Memory + Disk", true, (row) => `${number(row.memory_depth)} + ${number(row.backend_depth)}`, "Waiting messages in memory, and on disk only"];
const latencyColumn = ["E2E Latency", false, latency, "From publishing to finishing"];
const rateColumn = (what) => ["Rate", true, (row) => rateCell(`${what}:${row.node}:${row.topic_name}:${row.channel_name || ""}`, row, row.topic_name, row.channel_name), "New messages per second"];

function queueColumns(first, rows) {
  const columns = [
    first, graphed("Depth", "depth", "Messages that wait for delivery"), memoryColumn,
    graphed("In-Flight", "in_flight_count", "Delivered, not yet finished, requeued or timed out"),
    graphed("Deferred", "deferred_count", "Requeued or published with a delay, not yet due"),
    graphed("Requeued", "requeue_count", "Requeued by consumers (REQ)"),
    graphed("Timed Out", "timeout_count", "Requeued because no answer came in time"),
    graphed("Messages", "message_count", "New messages since the node started"), rateColumn("channel"),
    graphed("Connections", "client_count", "Connected consumers"),
  ];
  if (rows.some((row) => row.zone_local_msg_count || row.region_local_msg_count)) columns.push(["Delivery", false, delivery, "Deliveries within the zone, the region, and beyond"]);
  if (rows.some((row) => latency(row))) columns.push(latencyColumn);
  return columns;
}

function delivery(row) {
  const total = row.delivery_msg_count;
  const share = (value) => `${Math.round(((value || 0) * 100) / total)}\u00a0%`;
  return total ? `zone ${share(row.zone_local_msg_count)}, region ${share(row.region_local_msg_count)}, other ${share(row.global_msg_count)}` : "";
}

function attributes(row) {
  const found = [];
  if (row.tls) found.push(badge(row.tls_version ? `TLS ${row.tls_version}` : "TLS", "good"));
  if (row.snappy) found.push(badge("snappy"));
  if (row.deflate) found.push(badge("deflate"));
  if (row.sample_rate) found.push(badge(`sampled ${row.sample_rate} %`));
  if (row.authed) found.push(badge(row.auth_identity ? `auth: ${row.auth_identity}` : "auth", "good"));
  return found;
}

const clientColumns = [
  ["Client Host", false, (row) => h("span", { title: row.remote_address }, row.hostname || row.remote_address, row.client_id && row.client_id !== row.hostname ? h("span", { class: "quiet" }, ` (${row.client_id})`) : null)],
  ["Protocol", false, (row) => [row.version, row.user_agent ? h("span", { class: "quiet" }, ` ${row.user_agent}`) : null]],
  ["Attributes", false, attributes],
  ["NSQd Host", false, (row) => link(nodePath(row.node), row.node)],
  count("In-Flight", "in_flight_count"), count("Ready Count", "ready_count", "Most messages in flight at a time (RDY)"),
  count("Finished", "finish_count"), count("Requeued", "requeue_count"), count("Messages", "message_count"),
  ["Connected", true, (row) => age(row.connect_ts ? Math.max(1, Date.now() / 1000 - row.connect_ts) : 0)],
];

// --- Actions ---------------------------------------------------------------------------------

function question(title, text, action) {
  const dialog = document.getElementById("question");
  document.getElementById("question-title").textContent = title;
  document.getElementById("question-text").textContent = text;
  const yes = document.getElementById("question-yes");
  const no = document.getElementById("question-no");
  yes.textContent = action;
  return new Promise((resolve) => {
    const decide = (value) => { dialog.close(); resolve(value); };
    yes.onclick = () => decide(true);
    no.onclick = () => decide(false);
    dialog.oncancel = () => resolve(false);
    dialog.showModal();
    no.focus();
  });
}

async function act(method, path, body, done, after) {
  try {
    const answer = await ask(method, path, body);
    good = answer.message ? "" : done;
    if (after !== undefined) go(after, answer.message);
    else await show(answer.message);
  } catch (error) {
    tell(String(error.message || error), "error");
  }
}

function button(text, danger, title, why, method, path, body, done, after) {
  return h("button", {
    type: "button", class: danger ? "danger" : null, disabled: !settings.admin, "data-key": `${text}:${path}`,
    title: settings.admin ? null : "Only administrators may do this",
    onclick: async () => { if (await question(title, why, text)) await act(method, path, body, done, after); },
  }, text);
}

function queueActions(what, name, path, row, up) {
  const pause = row.paused ? "unpause" : "pause";
  const effect = what === "topic"
    ? { pause: "Messages are still accepted, and wait in the topic until it is unpaused.", empty: "All messages that wait in the topic itself are dropped; those of its channels stay.", delete: "The topic, its channels and all their messages are dropped, and consumers are disconnected." }
    : { pause: "No messages are delivered until it is unpaused.", empty: "All messages of the channel are dropped, those in flight and deferred included.", delete: "The channel and its messages are dropped, and its consumers are disconnected." };
  effect.unpause = "Messages go on.";
  const make = (action, danger) => button(
    action[0].toUpperCase() + action.slice(1), danger, `${action[0].toUpperCase() + action.slice(1)} ${what} ${name}?`, effect[action],
    action === "delete" ? "DELETE" : "POST", `api/${path}`, action === "delete" ? undefined : { action },
    `Done: ${action} ${what} ${name}`, action === "delete" ? up : undefined);
  return h("div", { class: "row" }, make(pause, false), make("empty", true), make("delete", true));
}

// --- Pages -----------------------------------------------------------------------------------

function title(text, crumbs, actions, marks) {
  return [
    crumbs ? h("p", { class: "crumbs" }, crumbs) : null,
    h("div", { class: "title" }, h("h1", {}, text, marks || []), actions || null),
  ];
}

async function streamsPage() {
  const answer = await ask("GET", "api/topics?depths=true");
  const body = h("div", {});
  const draw = () => {
    const rows = answer.topics.filter((row) => row.topic_name.toLowerCase().includes(filter.toLowerCase()));
    body.replaceChildren(table([
      ["Topic", false, (row) => [link(topicPath(row.topic_name), row.topic_name), paused(row)]],
      count("Depth", "depth", "Messages that wait in the topic itself"), count("Channels", "channels"),
      count("Depth of Channels", "channel_depth", "Messages that wait in its channels, summed"),
      count("In-Flight", "in_flight_count"), count("Messages", "message_count"),
      ["Rate", true, (row) => rate(`streams:${row.topic_name}`, row.message_count), "New messages per second"],
      count("NSQd Hosts", "nodes"),
    ], rows, { caption: "Topics", empty: answer.topics.length ? "No topic has this in its name." : "There are no topics yet: publish a message, or create one on the page Lookup." }));
  };
  const field = h("input", { type: "search", placeholder: "Filter topics", "aria-label": "Filter topics", "data-key": "filter", value: filter,
    oninput: (event) => { filter = event.target.value; draw(); } });
  draw();
  return { message: answer.message, name: "Streams", content: [title("Streams", null, h("div", { class: "row" }, field)), body] };
}

async function topicPage(topic) {
  const row = await ask("GET", `api/${topicPath(topic)}`);
  const nodes = row.nodes || [];
  const columns = [nodeColumn, graphed("Depth", "depth", "Messages that wait in the topic itself"), memoryColumn,
    graphed("Messages", "message_count", "New messages since the node started"), rateColumn("topic"), ["Channels", true, (each) => number((each.channels || []).length)]];
  if (nodes.some((each) => latency(each))) columns.push(latencyColumn);
  const first = ["Channel", false, (each) => [link(channelPath(topic, each.channel_name), each.channel_name), paused(each)]];
  return {
    message: row.message, name: topic,
    content: [
      title(topic, [link("topics", "Streams")], queueActions("topic", topic, topicPath(topic), row, "topics"), paused(row)),
      table(columns, nodes, { caption: "Nodes", total: nodes.length > 1 ? row : null, empty: "No nsqd has this topic." }),
      h("h2", {}, "Channels"),
      table(queueColumns(first, row.channels || []), row.channels || [], { caption: "Channels", empty: "No channel: messages wait in the topic until the first one is created." }),
    ],
  };
}

async function channelPage(topic, channel) {
  const row = await ask("GET", `api/${channelPath(topic, channel)}`);
  const nodes = row.nodes || [];
  return {
    message: row.message, name: `${topic}/${channel}`,
    content: [
      title(channel, [link("topics", "Streams"), " / ", link(topicPath(topic), topic)], queueActions("channel", channel, channelPath(topic, channel), row, topicPath(topic)), paused(row)),
      table(queueColumns(nodeColumn, nodes), nodes, { caption: "Nodes", total: nodes.length > 1 ? row : null }),
      h("h2", {}, "Client Connections"),
      table(clientColumns, row.clients || [], { caption: "Client connections", empty: "No consumer is connected to this channel." }),
    ],
  };
}

async function nodesPage() {
  const answer = await ask("GET", "api/nodes");
  const lookupds = settings.lookupds.length;
  const name = (row) => (row.broadcast_address.includes(":") ? `[${row.broadcast_address}]:${row.http_port}` : `${row.broadcast_address}:${row.http_port}`);
  const columns = [
    ["Hostname", false, (row) => link(nodePath(name(row)), row.hostname || name(row))],
    ["Broadcast Address", false, (row) => row.broadcast_address],
    ["TCP Port", true, (row) => row.tcp_port], ["HTTP Port", true, (row) => row.http_port],
    ["Version", false, (row) => [row.version, row.out_of_date ? [" ", badge("out of date", "warn")] : null]],
  ];
  if (lookupds) columns.push(["Lookupd Conns", false, (row) => row.remote_addresses.length < lookupds
    ? h("span", { title: row.remote_addresses.join("\n") }, badge(`${row.remote_addresses.length} of ${lookupds}`, "error"))
    : h("span", { title: row.remote_addresses.join("\n") }, `${row.remote_addresses.length}`)]);
  columns.push(["Topics", false, (row) => (row.topics.length
    ? row.topics.map((each) => (each.tombstoned ? badge(`${each.topic} (tombstoned)`, "warn") : [link(topicPath(each.topic), each.topic), " "]))
    : h("span", { class: "quiet" }, "none"))]);
  return { message: answer.message, name: "Nodes", content: [title(`Nodes (${answer.nodes.length})`), table(columns, answer.nodes, { caption: "Nodes", empty: "No nsqd is known." })] };
}

async function nodePage(node) {
  const answer = await ask("GET", `api/${nodePath(node)}`);
  const all = (answer.topics || []).flatMap((topic) => topic.channels || []);
  const first = ["Channel", false, (each) => [link(topicPath(each.topic_name), each.topic_name), " / ", link(channelPath(each.topic_name, each.channel_name), each.channel_name), paused(each)]];
  const tombstone = (topic) => button("Tombstone", true, `Tombstone topic ${topic} on ${node}?`,
    "Consumers no longer find the topic on this node, and the topic with its messages is deleted there. If producers still publish to this node, the topic comes back.",
    "DELETE", `api/${nodePath(node)}`, { topic }, `Done: tombstone topic ${topic} on ${node}`);
  return {
    message: answer.message, name: node,
    content: [
      title(node, [link("nodes", "Nodes")]),
      h("p", { class: "quiet" }, `${number(answer.total_messages)} messages since the start, ${number(answer.total_clients)} consumers.`),
      h("h2", {}, "Topics"),
      table([
        ["Topic", false, (row) => [link(topicPath(row.topic_name), row.topic_name), paused(row)]],
        count("Depth", "depth"), memoryColumn, count("Messages", "message_count"), rateColumn("node"),
        ["Channels", true, (row) => number((row.channels || []).length)],
        ...(settings.lookupds.length ? [["Action", false, (row) => tombstone(row.topic_name)]] : []),
      ], answer.topics || [], { caption: "Topics", empty: "This node has no topics." }),
      h("h2", {}, "Channels"), table(queueColumns(first, all), all, { caption: "Channels", empty: "No channels." }),
      h("h2", {}, "Client Connections"),
      table([["Channel", false, (row) => `${row.topic_name} / ${row.channel_name}`], ...clientColumns.filter((column) => column[0] !== "NSQd Host")],
        all.flatMap((channel) => (channel.clients || []).map((client) => ({ ...client, topic_name: channel.topic_name, channel_name: channel.channel_name }))),
        { caption: "Client connections", empty: "No consumer is connected." }),
    ],
  };
}

async function counterPage() {
  const answer = await ask("GET", "api/counter");
  const rows = Object.values(answer.stats || {});
  const total = rows.reduce((sum, row) => sum + row.message_count, 0);
  return {
    message: answer.message, name: "Counter",
    content: [
      title("Counter"), h("p", { class: "big", id: "count" }, number(total)),
      h("p", { class: "quiet" }, `messages into all channels of all nodes since they started; ${rate("counter", total)} per second`),
      table([
        ["Topic", false, (row) => link(topicPath(row.topic_name), row.topic_name)],
        ["Channel", false, (row) => link(channelPath(row.topic_name, row.channel_name), row.channel_name)],
        ["NSQd Host", false, (row) => link(nodePath(row.node), row.node)], count("Messages", "message_count"),
      ], rows.sort((one, other) => other.message_count - one.message_count), { caption: "Messages by channel" }),
    ],
  };
}

function createForm() {
  const topic = h("input", { name: "topic", required: true, maxlength: 64, pattern: "[.a-zA-Z0-9_\\-]+(#ephemeral)?", title: "Letters, digits, . _ - and perhaps #ephemeral at the end", autocomplete: "off", "data-key": "new-topic" });
  const channel = h("input", { name: "channel", maxlength: 64, pattern: "[.a-zA-Z0-9_\\-]+(#ephemeral)?", title: "Letters, digits, . _ - and perhaps #ephemeral at the end", autocomplete: "off", "data-key": "new-channel" });
  return h("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    act("POST", "api/topics", { topic: topic.value, channel: channel.value }, `Created: ${topic.value}${channel.value ? " / " + channel.value : ""}`);
  } },
  h("label", {}, "Topic", topic), h("label", {}, "Channel (optional)", channel),
  h("button", { class: "primary", disabled: !settings.admin, title: settings.admin ? null : "Only administrators may do this" }, "Create"));
}

async function lookupPage() {
  const answer = await ask("GET", "api/topics?inactive=true");
  const rows = Object.entries(answer.topics || {}).flatMap(([topic, channels]) => [{ topic, channel: "" }, ...channels.map((channel) => ({ topic, channel }))]);
  const remove = (row) => (row.channel
    ? button("Delete", true, `Delete channel ${row.channel} of ${row.topic}?`, "The lookupds forget the channel.", "DELETE", `api/${channelPath(row.topic, row.channel)}`, undefined, `Done: delete channel ${row.channel}`)
    : button("Delete", true, `Delete topic ${row.topic}?`, "The lookupds forget the topic and its channels.", "DELETE", `api/${topicPath(row.topic)}`, undefined, `Done: delete topic ${row.topic}`));
  return {
    message: answer.message, name: "Lookup", isForm: true,
    content: [
      title("Lookup"), h("h2", {}, "Create a topic or a channel"),
      h("p", { class: "quiet" }, settings.lookupds.length ? "The lookupds are told; a channel is also created on every nsqd that has the topic." : "Topic and channel are created on every nsqd."),
      createForm(), h("h2", {}, "Inactive topics"),
      settings.lookupds.length
        ? table([["Topic", false, (row) => row.topic], ["Channel", false, (row) => row.channel], ["Action", false, remove]], rows, { caption: "Inactive topics", empty: "Every topic that the lookupds know is on some nsqd." })
        : h("p", { class: "quiet" }, "Known with --lookupd-http-address only."),
    ],
  };
}

// --- The frame around the pages --------------------------------------------------------------

async function ask(method, path, body) {
  const options = { method, headers: { Accept: "application/json" } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(BASE + path, options);
  } catch {
    throw new Error("nsqadmin does not answer.");
  }
  const value = await answer.json().catch(() => ({ message: `nsqadmin answered ${answer.status} without JSON.` }));
  if (!answer.ok) throw new Error(value.message === "FORBIDDEN" ? "FORBIDDEN: only administrators may do this." : value.message || `status ${answer.status}`);
  return value;
}

function tell(text, kind) {
  notice.replaceChildren(...(text ? [h("p", { class: `banner ${kind}` }, text)] : []));
}

function parts() {
  return location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decodeURIComponent);
}

function pageOf([first, one, two]) {
  if (!first || (first === "topics" && !one)) return streamsPage;
  if (first === "topics") return two ? () => channelPage(one, two) : () => topicPage(one);
  if (first === "nodes") return one ? () => nodePage(one) : nodesPage;
  if (first === "counter") return counterPage;
  return lookupPage;
}

async function show(warning) {
  const mine = ++turn;
  clearTimeout(timer);
  const path = parts();
  let page;
  try {
    page = await pageOf(path)();
  } catch (error) {
    if (mine !== turn) return;
    tell(String(error.message || error), "error");
    if (main.dataset.path !== location.pathname) main.replaceChildren(h("p", { class: "quiet" }, "This page cannot be shown now; it is tried again."));
    later(mine, false);
    return;
  }
  if (mine !== turn) return;
  const text = warning || page.message || "";
  tell(text || good, text ? "warn" : "good");
  good = "";
  const focused = document.activeElement && main.contains(document.activeElement) ? document.activeElement : null;
  const key = focused ? focused.dataset.key || focused.getAttribute("href") : null;
  const selection = focused instanceof HTMLInputElement ? [focused.selectionStart, focused.selectionEnd] : null;
  main.replaceChildren(...page.content.flat(9).filter(Boolean));
  main.dataset.path = location.pathname;
  main.dataset.turn = mine;
  document.title = `${page.name} - nsqadmin`;
  const again = key ? [...main.querySelectorAll("[data-key], a[href]")].find((each) => (each.dataset.key || each.getAttribute("href")) === key) : null;
  if (again) {
    again.focus({ preventScroll: true });
    if (selection && again instanceof HTMLInputElement) again.setSelectionRange(...selection);
  }
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.page === (path[0] || "topics")) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  later(mine, page.isForm);
}

// A form is not drawn again under the hands of its user.
function later(mine, isForm) {
  const seconds = Number(document.getElementById("refresh").value);
  if (seconds && !isForm) timer = setTimeout(() => { if (mine === turn && !document.hidden && !document.getElementById("question").open) show(); else if (mine === turn) later(mine, isForm); }, seconds * 1000);
}

function go(path, warning) {
  history.pushState(null, "", BASE + path);
  counts.clear();
  show(warning).then(() => main.focus({ preventScroll: true }));
  scrollTo(0, 0);
}

document.addEventListener("click", (event) => {
  const found = event.target instanceof Element ? event.target.closest("a[data-link]") : null;
  if (!found || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(found.getAttribute("href").slice(BASE.length));
});
addEventListener("popstate", () => show());
document.addEventListener("visibilitychange", () => { if (!document.hidden) show(); });

function remember(name, value) {
  try { localStorage.setItem(name, value); } catch { /* storage may be switched off */ }
}
function recall(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

const refresh = document.getElementById("refresh");
if ([...refresh.options].some((option) => option.value === recall("nsqadmin-refresh"))) refresh.value = recall("nsqadmin-refresh");
refresh.addEventListener("change", () => { remember("nsqadmin-refresh", refresh.value); show(); });

const THEMES = ["auto", "light", "dark"];
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = `Theme: ${theme}`;
  remember("nsqadmin-theme", theme);
}
let theme = THEMES.includes(recall("nsqadmin-theme")) ? recall("nsqadmin-theme") : "auto";
setTheme(theme);
document.getElementById("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  setTheme(theme);
});

async function start() {
  try {
    settings = await ask("GET", "api/settings");
    document.getElementById("user").textContent = settings.user ? `${settings.user}${settings.admin ? "" : " (read only)"}` : settings.admin ? "" : "read only";
    document.getElementById("footer").textContent = `nsqadmin ${settings.version}` + (settings.lookupds.length ? `, lookupd ${settings.lookupds.join(", ")}` : "");
  } catch {
    setTimeout(start, 2000);
    tell("nsqadmin does not answer.", "error");
    return;
  }
  await show();
}
start();
