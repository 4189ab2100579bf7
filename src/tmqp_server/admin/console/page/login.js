// Log in: a token becomes a session, whose cookie no script can read.

import { fields } from "./ask.js";
import { card, fill, h } from "./dom.js";
import { login } from "./rights.js";

export async function page({ entered }) {
  const made = fields([{ name: "token", label: "Token", kind: "password", required: true, help: "One that the configuration of the server lists under [access]. It is not kept in this browser." }]);
  const wrong = h("p", { class: "wrong", role: "alert" });
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const yes = form.querySelector("button");
    yes.disabled = true;
    try {
      await login(made.read().token);
      await entered();
    } catch (error) {
      fill(wrong, error.status === 401 ? "The server does not know this token." : error.message);
      made.controls[0].value = "";
      made.controls[0].focus();
    } finally {
      yes.disabled = false;
    }
  } }, h("div", { class: "fields" }, made.elements), wrong, h("div", { class: "row end" }, h("button", { class: "primary" }, "Log in")));
  const element = h("div", { class: "login" }, h("h1", {}, "Log in"), card(null, form));
  return { name: "Log in", element, drawn: () => made.controls[0].focus() };
}
