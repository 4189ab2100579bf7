// Questions before something changes, and forms: one dialog for all of them.

import { fill, h } from "./dom.js";

const dialog = document.getElementById("question");
let settle = null;

dialog.addEventListener("close", () => { if (settle) { const done = settle; settle = null; done(null); } });

const answer = (value) => { const done = settle; settle = null; dialog.close(); if (done) done(value); };

function open(heading, form) {
  if (settle) answer(null);
  fill(dialog, h("h2", { id: "question-title" }, heading), form);
  return new Promise((resolve) => { settle = resolve; dialog.showModal(); });
}

const row = (word, danger) => h("div", { class: "row end" },
  h("button", { type: "button", onclick: () => answer(null), "data-key": "no" }, "Cancel"),
  h("button", { type: "submit", id: "question-yes", class: danger ? "danger" : "primary" }, word));

/**
 * Ask before something is done.  Cancel has the focus; with `typed` the user must write that name.
 *
 * @returns a promise: whether to do it.
 */
export async function sure(heading, text, word, { danger = true, typed = "" } = {}) {
  const field = h("input", { autocomplete: "off", spellcheck: "false", "aria-describedby": "question-typed", name: "typed" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const form = h("form", { method: "dialog", onsubmit: (event) => {
    event.preventDefault();
    if (typed && field.value !== typed) { fill(wrong, `This is not ${typed}.`); field.focus(); } else answer(true);
  } },
  h("p", {}, text),
  typed && h("label", { class: "field" }, h("span", { id: "question-typed" }, "Type ", h("b", {}, typed), " to go on"), field),
  wrong, row(word, danger));
  const asked = open(heading, form);
  (typed ? field : form.querySelector("[data-key=no]")).focus();
  return Boolean(await asked);
}

/**
 * One field of a form.  Kinds: text (the default), number, flag, choice (with `choices`), long.
 * A number that is left empty, and an empty text, are left out of the values.
 */
function control(spec, value) {
  const common = { name: spec.name, required: spec.required, "aria-describedby": spec.help ? `help-${spec.name}` : null };
  const given = value === undefined || value === null ? "" : String(value);
  if (spec.kind === "flag") return h("input", { ...common, type: "checkbox", required: null, checked: Boolean(value) });
  if (spec.kind === "long") return h("textarea", { ...common, rows: spec.rows || 4, spellcheck: "false", value: given });
  if (spec.kind === "choice") {
    const list = h("select", common, spec.choices.map((each) => h("option", { value: each }, each || "–")));
    if (given || spec.choices.includes("")) list.value = given;
    return list;
  }
  const number = spec.kind === "number" ? { type: "number", min: spec.least ?? 0, max: spec.most, step: spec.step || 1 } : { type: spec.kind || "text", maxlength: spec.most };
  return h("input", { ...common, ...number, autocomplete: "off", spellcheck: "false", placeholder: spec.example, value: given });
}

const read = (spec, element) => {
  if (spec.kind === "flag") return element.checked;
  if (spec.kind === "number") return element.value === "" ? undefined : Number(element.value);
  return element.value === "" && !spec.keep ? undefined : element.value;
};

/** The fields of a form and a function that reads their values. */
export function fields(specs, values = {}) {
  const controls = specs.map((spec) => control(spec, values[spec.name] ?? spec.value));
  const shownFields = specs.map((spec, at) => h("label", { class: spec.kind === "flag" ? "field flag" : "field" },
    h("span", {}, spec.label), controls[at], spec.help && h("small", { id: `help-${spec.name}` }, spec.help)));
  const values_ = () => Object.fromEntries(specs.map((spec, at) => [spec.name, read(spec, controls[at])]).filter(([, value]) => value !== undefined));
  return { elements: shownFields, controls, read: values_ };
}

/**
 * A form in the dialog.  `run(values)` does what is asked; its error is shown and the form stays.
 *
 * @returns a promise: the values once it is done, null when the user cancels.
 */
export function form(heading, specs, word, run, { values = {}, text = "", danger = false } = {}) {
  const made = fields(specs, values);
  const wrong = h("p", { class: "wrong", role: "alert" });
  const element = h("form", { class: "form", onsubmit: async (event) => {
    event.preventDefault();
    const yes = element.querySelector("#question-yes");
    yes.disabled = true;
    try {
      const given = made.read();
      await run(given);
      answer(given);
    } catch (error) {
      fill(wrong, error.message);
      yes.disabled = false;
    }
  } },
  text && h("p", {}, text), h("div", { class: "fields" }, made.elements), wrong, row(word, danger));
  const asked = open(heading, element);
  (made.controls[0] || element.querySelector("button")).focus();
  return asked;
}
