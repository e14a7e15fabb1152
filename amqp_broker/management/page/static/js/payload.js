// Messages in readable form: JSON indented, text as text, compressed bodies unpacked, other octets as a hex dump.

import { h, put } from "./dom.js";
import { date, duration, number, octets, plain } from "./format.js";

const JSON_MAX = 200000;
const HEX_MAX = 4096;
const UNPACKED_MAX = 1 << 20;
// The formats of DecompressionStream by content encoding.
const PACKED = { gzip: "gzip", "x-gzip": "gzip", deflate: "deflate" };
// The header with the deaths of a message, the last one first.
const DEATHS = "x-death";

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

/** Return whether a message has only the beginning of its payload. */
export function isCut(message) {
  const text = textOf(message);
  return message.payload_bytes > (text === null ? atob(message.payload ?? "").length : new TextEncoder().encode(text).length);
}

/** Return the payload, unpacked if it is compressed, with a switch between formatted and raw if they differ. */
export function payloadView(message) {
  const format = PACKED[String(message.properties?.content_encoding ?? "").trim().toLowerCase()];
  if (format === undefined || textOf(message) !== null || isCut(message)) return plainView(message);
  const view = h("div", null, plainView(message));
  unpacked(message.payload, format).then(
    ({ text, isWhole }) => {
      const size = new TextEncoder().encode(text).length;
      const note = h("p", { class: "note" }, isWhole ? `Unpacked from ${octets(message.payload_bytes)} of ${format}.` : `The first ${octets(UNPACKED_MAX)}, unpacked from ${format}.`);
      put(view, plainView({ payload: text, payload_bytes: size }), note);
    },
    () => view.append(h("p", { class: "note" }, `The payload is not what its content encoding says: ${format}.`)),
  );
  return view;
}

/** Return the text in a compressed payload, up to a limit. Throw if it is not in that format, or not text. */
async function unpacked(base64, format) {
  const packed = new Blob([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))]);
  const reader = packed.stream().pipeThrough(new DecompressionStream(format)).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), isWhole: true };
    size += value.length;
    text += decoder.decode(value, { stream: true });
    if (size > UNPACKED_MAX) {
      reader.cancel();
      return { text, isWhole: false };
    }
  }
}

function plainView(message) {
  const text = textOf(message);
  const note = isCut(message) ? h("p", { class: "note" }, `Only the beginning of ${octets(message.payload_bytes)} is shown.`) : null;
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
function pairsView(pairs, read = plain) {
  const entries = Object.entries(Array.isArray(pairs) ? {} : (pairs ?? {}));
  if (!entries.length) return null;
  return h("dl", { class: "pairs-view" }, entries.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, read(value, name)))));
}

/** Return the value of a property, and what it means. */
function property(value, name) {
  if (name === "timestamp" && typeof value === "number") return `${value} (${date(value * 1000)})`;
  if (name === "expiration" && /^\d+$/.test(value)) return `${value} (${duration(Number(value))})`;
  if (name === "delivery_mode") return { 1: "1 (not persistent)", 2: "2 (persistent)" }[value] ?? plain(value);
  return plain(value);
}

/** Return the deaths of a message, the last first. */
function deathsView(deaths) {
  const found = Array.isArray(deaths) ? deaths.filter((one) => one && typeof one === "object") : [];
  if (!found.length) return null;
  return h(
    "dl",
    { class: "pairs-view" },
    found.map(({ queue, reason, count, exchange, "routing-keys": keys, time }) =>
      h("div", null, h("dt", null, plain(queue)), h("dd", null, `${plain(reason)} ${number(count)} ${count === 1 ? "time" : "times"}, from ${exchange === "" ? "the default exchange" : plain(exchange)} with ${Array.isArray(keys) ? keys.join(", ") : plain(keys)}, last ${date(typeof time === "number" ? time * 1000 : null)}`)),
    ),
  );
}

export function propertiesView(properties) {
  const { headers, ...rest } = Array.isArray(properties) ? {} : (properties ?? {});
  const shown = [
    [deathsView(headers?.[DEATHS]), "Deaths"],
    [pairsView(rest, property), "Properties"],
    [pairsView(headers), "Headers"],
  ].filter(([view]) => view);
  return h("div", { class: "properties" }, shown.length ? shown.map(([view, title]) => h("div", null, h("h3", { class: "minor-title" }, title), view)) : h("p", { class: "note" }, "No properties."));
}
