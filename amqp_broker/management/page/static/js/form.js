// Forms and dialogs. When the broker refuses the input, a dialog stays open and shows the reason.

import { h, put, toast, uniqueId } from "./dom.js";
import { offered } from "./suggestions.js";

/** A field: { name, label, type: "text"|"password"|"number"|"select"|"check"|"area"|"pairs"|"file", options, value, help, required, suggest } */
export function field(given) {
  const id = uniqueId("field");
  const help = given.help ? h("small", { id: `${id}-help` }, given.help) : null;
  const shared = { id, name: given.name, required: given.required, "aria-describedby": help ? `${id}-help` : null };
  let control;
  let read;
  if (given.type === "select") {
    control = h(
      "select",
      { ...shared, onchange: given.onchange },
      given.options.map((option) => {
        const [value, label] = Array.isArray(option) ? option : [option, option];
        return h("option", { value, selected: value === given.value }, label);
      }),
    );
    read = () => control.value;
  } else if (given.type === "area") {
    control = h("textarea", { ...shared, rows: given.rows ?? 6, spellcheck: "false", value: given.value ?? "" });
    read = () => control.value;
  } else if (given.type === "check") {
    control = h("input", { ...shared, type: "checkbox", checked: given.value });
    read = () => control.checked;
  } else if (given.type === "pairs") {
    const pairs = new Pairs(given);
    return { element: labelled(given, null, pairs.element, help, "group"), read: () => pairs.read(), name: given.name };
  } else {
    control = h("input", {
      ...shared,
      type: given.type ?? "text",
      value: given.type === "file" ? undefined : (given.value ?? ""),
      placeholder: given.placeholder,
      autocomplete: given.type === "password" ? "new-password" : "off",
      autocapitalize: "off",
      spellcheck: "false",
      min: given.min,
      onchange: given.onchange,
    });
    read = () => (given.type === "number" ? (control.value === "" ? undefined : Number(control.value)) : control.value);
  }
  const element = labelled(given, id, control, help);
  if (given.suggest) element.append(offered(control, given.suggest));
  return { element, read, control, name: given.name };
}

function labelled(given, id, control, help, role = null) {
  const label = h(id ? "label" : "span", { for: id, class: "label" }, given.label, given.required ? h("i", { "aria-hidden": "true" }, " *") : null);
  return h("div", { class: `field ${given.type ?? "text"} ${given.isWide ? "wide" : ""}`, role, "aria-label": role ? given.label : null }, label, control, help);
}

/** Names with typed values, for arguments and headers. */
class Pairs {
  constructor({ hints = [], value = {} }) {
    this.rows = h("div", { class: "pairs" });
    const buttons = hints.map(([name, kind, help]) =>
      h("button", { type: "button", class: "hint", title: help, onclick: () => this.add(name, "", kind).querySelector("input.value").focus() }, name),
    );
    this.element = h(
      "div",
      { class: "pairs-box" },
      this.rows,
      h("div", { class: "hints" }, h("button", { type: "button", class: "quiet", onclick: () => this.add().querySelector("input").focus() }, "+ Add"), buttons),
    );
    for (const [name, one] of Object.entries(value)) this.add(name, typeof one === "object" ? JSON.stringify(one) : String(one), kindOf(one));
  }

  add(name = "", value = "", kind = "string") {
    const row = h(
      "div",
      { class: "pair" },
      h("input", { "aria-label": "Name", value: name, placeholder: "name", class: "key", spellcheck: "false" }),
      h("input", { "aria-label": "Value", value, placeholder: "value", class: "value", spellcheck: "false" }),
      h("select", { "aria-label": "Type" }, ["string", "number", "boolean", "json"].map((one) => h("option", { value: one, selected: one === kind }, one))),
      h("button", { type: "button", class: "quiet", "aria-label": "Remove", onclick: () => row.remove() }, "×"),
    );
    this.rows.append(row);
    return row;
  }

  read() {
    const found = {};
    for (const row of this.rows.children) {
      const [name, value] = [...row.querySelectorAll("input")].map((input) => input.value);
      if (name === "") continue;
      const kind = row.querySelector("select").value;
      if (kind === "string") found[name] = value;
      else if (kind === "boolean") found[name] = value.trim().toLowerCase() === "true";
      else if (kind === "number") {
        if (value.trim() === "" || Number.isNaN(Number(value))) throw new Error(`${name}: “${value}” is not a number`);
        found[name] = Number(value);
      } else {
        try {
          found[name] = JSON.parse(value);
        } catch {
          throw new Error(`${name}: “${value}” is not JSON`);
        }
      }
    }
    return found;
  }
}

const kindOf = (value) => (value === null || typeof value === "object" ? "json" : typeof value);

/** Return a form. If `submit(values)` throws, the form shows the reason. */
export function form({ fields, action, submit, isDangerous = false, cancel = null, note = null }) {
  const made = fields.filter(Boolean).map(field);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { type: "submit", class: isDangerous ? "danger" : "primary" }, action);
  const element = h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        button.disabled = true;
        problem.hidden = true;
        try {
          await submit(Object.fromEntries(made.map((one) => [one.name, one.read()])), element);
        } catch (error) {
          problem.hidden = false;
          put(problem, error.message);
        } finally {
          button.disabled = false;
        }
      },
    },
    note ? h("p", { class: "note" }, note) : null,
    h("div", { class: "fields" }, made.map((one) => one.element)),
    problem,
    h("div", { class: "buttons" }, cancel ? h("button", { type: "button", onclick: cancel }, "Cancel") : null, button),
  );
  element.controls = Object.fromEntries(made.map((one) => [one.name, one]));
  return element;
}

/** Open a form in a dialog; `done` is a toast, or a function that returns it, after the submit. */
export function dialog({ title, done = null, submit, ...rest }) {
  const close = () => element.close();
  const inner = form({
    ...rest,
    cancel: close,
    submit: async (values, where) => {
      const answer = await submit(values, where);
      close();
      if (done) toast(typeof done === "function" ? done(values, answer) : done);
    },
  });
  const id = uniqueId("dialog");
  const element = h("dialog", { "aria-labelledby": id, onclose: () => leave(element) }, h("h2", { id }, title), inner);
  document.body.append(element);
  element.showModal();
  // Focus the first required input that is empty; fields before it have good defaults.
  [...element.querySelectorAll("input[required]")].find((input) => input.value === "")?.focus();
  return element;
}

function leave(element) {
  const toasts = document.getElementById("toasts");
  if (element.contains(toasts)) document.body.append(toasts);
  element.remove();
}

/** Ask for confirmation of a destructive action. */
export const confirm = ({ title, note, action, submit, done }) => dialog({ title, note, action, submit, done, fields: [], isDangerous: true });

/** Show text in a dialog. */
export function sheet(title, ...content) {
  const id = uniqueId("dialog");
  const element = h(
    "dialog",
    { "aria-labelledby": id, class: "sheet", onclose: () => leave(element) },
    h("h2", { id }, title),
    content,
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => element.close() }, "Close")),
  );
  document.body.append(element);
  element.showModal();
  return element;
}
