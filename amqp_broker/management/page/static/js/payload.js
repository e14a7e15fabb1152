// Messages in readable form: JSON indented, text as text, binary as a hex dump.

import { h } from "./dom.js";
import { octets, plain } from "./format.js";

const JSON_MAX = 200000;
const HEX_MAX = 4096;

/** Return the text of a payload, or null if it is not text. */
function textOf({ payload, payload_encoding: encoding }) {
  if (encoding !== "base64") return payload ?? "";
  return null;
}

/** Return the beginning of a payload in one line. */
export function preview(message) {
  const text = textOf(message);
  if (text === null) return `${octets(message.payload_bytes)} of binary data`;
  return text.slice(0, 240).replace(/\s+/g, " ");
}

function json(text) {
  if (text.length > JSON_MAX || !/^\s*[[{"\-\dtfn]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Return the payload, with a switch between formatted and raw if they differ. */
export function payloadView(message) {
  const text = textOf(message);
  const isCut = message.payload_bytes > (text === null ? atob(message.payload ?? "").length : new TextEncoder().encode(text).length);
  const note = isCut ? h("p", { class: "note" }, `Only the beginning of ${octets(message.payload_bytes)} is shown.`) : null;
  if (text === null) return h("div", { class: "payload" }, h("pre", { tabindex: 0, class: "hex" }, hex(message.payload)), note);
  if (text === "") return h("div", { class: "payload" }, h("p", { class: "note" }, "No payload."));
  const value = json(text);
  if (value === undefined || value === null || typeof value !== "object") return h("div", { class: "payload" }, h("pre", { tabindex: 0 }, text), note);
  const pretty = h("pre", { tabindex: 0, class: "json" }, pieces(value, ""));
  const raw = h("pre", { tabindex: 0, hidden: true }, text);
  const toggle = h(
    "button",
    {
      type: "button",
      class: "quiet small",
      onclick: () => {
        raw.hidden = !raw.hidden;
        pretty.hidden = !pretty.hidden;
        toggle.textContent = raw.hidden ? "Raw" : "Pretty";
      },
    },
    "Raw",
  );
  return h("div", { class: "payload" }, toggle, pretty, raw, note);
}

function pieces(value, indent) {
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    if (!value.length) return ["[]"];
    return ["[\n", value.map((item, index) => [deeper, pieces(item, deeper), index < value.length - 1 ? ",\n" : "\n"]), indent, "]"];
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value);
    if (!entries.length) return ["{}"];
    return [
      "{\n",
      entries.map(([name, item], index) => [deeper, h("i", { class: "j-key" }, JSON.stringify(name)), ": ", pieces(item, deeper), index < entries.length - 1 ? ",\n" : "\n"]),
      indent,
      "}",
    ];
  }
  const kind = typeof value === "string" ? "j-text" : typeof value === "number" ? "j-number" : "j-word";
  return [h("i", { class: kind }, JSON.stringify(value))];
}

function hex(base64) {
  const data = atob(base64 ?? "").slice(0, HEX_MAX);
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.slice(at, at + 16)].map((one) => one.charCodeAt(0));
    const digits = row.map((one) => one.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

/** Return a list of the names and values of properties or headers. */
function pairsView(pairs) {
  const entries = Object.entries(Array.isArray(pairs) ? {} : (pairs ?? {}));
  if (!entries.length) return null;
  return h("dl", { class: "pairs-view" }, entries.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, plain(value)))));
}

export function propertiesView(properties) {
  const { headers, ...rest } = Array.isArray(properties) ? {} : (properties ?? {});
  const shown = [
    [pairsView(rest), "Properties"],
    [pairsView(headers), "Headers"],
  ].filter(([view]) => view);
  return h("div", { class: "properties" }, shown.length ? shown.map(([view, title]) => h("div", null, h("h3", { class: "minor-title" }, title), view)) : h("p", { class: "note" }, "No properties."));
}
