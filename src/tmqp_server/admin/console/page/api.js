// Requests to the server, and what goes wrong with them.

const BASE = new URL("../api/v1/", import.meta.url);

/** Who is logged in, filled in by `enter`. */
export const session = { name: "", csrf: "", loggedIn: false, canLeave: false };

/** An answer that is a problem: `status`, the broker's `code`, and a sentence. */
export class Problem extends Error {
  constructor(status, value) {
    super(value.detail || value.title || `the server answered ${status}`);
    this.status = status;
    this.code = value.code;
    this.value = value;
  }
}

/** As many connections as a browser keeps to one server, and a few more. */
const TRIES = 8;

const address = (path, query) => {
  const url = new URL(path, BASE);
  for (const [key, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(key, value);
  }
  return url;
};

async function send(method, path, { query, body, headers = {}, signal, type = "application/json" } = {}) {
  const fields = { Accept: "application/json, application/problem+json", ...headers };
  const options = { method, headers: fields, signal, credentials: "same-origin", cache: "no-store", redirect: "error" };
  if (method !== "GET") {
    fields["Content-Type"] = type;
    if (session.csrf) fields["X-Tmqp-Csrf"] = session.csrf;
    options.body = body === undefined ? "" : type === "application/json" ? JSON.stringify(body) : body;
  }
  for (let left = TRIES; ; left -= 1) {
    let answer;
    try {
      answer = await fetch(address(path, query), options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, { detail: "The server does not answer." });
    }
    // A connection belongs to who was logged in when it was opened; the server has closed it.
    if (answer.status !== 421 || !left) return answer;
  }
}

async function ask(method, path, options) {
  const answer = await send(method, path, options);
  const text = await answer.text();
  let value = {};
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    value = { detail: `the server answered ${answer.status} without JSON` };
  }
  if (!answer.ok) throw new Problem(answer.status, value || {});
  return value;
}

export const get = (path, query, options) => ask("GET", path, { query, ...options });
export const post = (path, body, options) => ask("POST", path, { body, ...options });
export const put = (path, body, options) => ask("PUT", path, { body, ...options });
export const patch = (path, body, options) => ask("PATCH", path, { body, ...options });
export const remove = (path, query, options) => ask("DELETE", path, { query, ...options });

/** Where a download is; opened by a link, never shown. */
export const whereIs = (path, query) => address(path, query).href;

// --- Server-sent events --------------------------------------------------------------------------

/**
 * Read a stream of events until it ends or `signal` aborts it.
 *
 * Not EventSource, which tells neither the status nor the problem of an answer.
 */
export async function follow(path, query, signal, heard, opened) {
  const answer = await send("GET", path, { query, signal, headers: { Accept: "text/event-stream" } });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  opened();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const found = { event: "message", data: "", id: "" };
        for (const line of part.split("\n")) {
          const at = line.indexOf(":");
          if (at > 0) found[line.slice(0, at)] = line.slice(at + 1).trimStart();
        }
        if (found.data) heard(found.event, JSON.parse(found.data), found.id);
      }
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server does not answer." });
  }
}
