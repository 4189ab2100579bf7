// Who is logged in, and what they may do.  What they may not do is not shown; the server refuses it
// in any case.

import { get, post, remove, session } from "./api.js";

const KEPT_MS = 60000;
const LOOKED_AT = 12;
const answers = new Map();
let anywhere = new Set();

/** What the client may do with a channel, a queue or a router; a set of rights. */
export function rightsOn(subject = {}) {
  const key = JSON.stringify(subject);
  const kept = answers.get(key);
  if (kept && Date.now() - kept.at < KEPT_MS) return kept.found;
  if (answers.size > 500) answers.clear();
  const found = get("session/rights", subject).then((answer) => new Set(answer.rights));
  answers.set(key, { at: Date.now(), found });
  found.catch(() => answers.delete(key));
  return found;
}

/** Whether the client may do this in general, or with one of the first channels that it sees. */
export const may = (right) => anywhere.has(right);

/** Ask who this is; false if a log-in is needed. */
export async function enter() {
  let who;
  try {
    who = await get("session");
  } catch (error) {
    if (error.status === 401) { session.loggedIn = false; session.canLeave = false; return false; }
    throw error;
  }
  answers.clear();
  session.csrf = who.csrf || "";
  session.canLeave = who.session;
  session.name = who.session ? "logged in" : "";
  anywhere = new Set(await rightsOn());
  // Somebody may be allowed to push into orders only; then the general answer is no.
  if (!anywhere.has("push")) {
    const seen = await get("channels", { limit: LOOKED_AT, fields: "name" }).catch((error) => { if (error.status === 403) return null; throw error; });
    if (seen) {
      anywhere.add("see-channel");
      for (const found of await Promise.all(seen.items.map((each) => rightsOn({ channel: each.name })))) found.forEach((right) => anywhere.add(right));
    }
  }
  session.loggedIn = true;
  return true;
}

/** A token becomes a session, whose cookie no script can read. */
export async function login(token) {
  session.csrf = "";
  await post("session", { token });
}

export async function leave() {
  await remove("session");
  Object.assign(session, { loggedIn: false, canLeave: false, csrf: "", name: "" });
}
