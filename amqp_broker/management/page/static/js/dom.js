// All elements are created here: content is always text, never markup, and links stay within the page.

const SVG = "http://www.w3.org/2000/svg";
// Attributes that are shown or read to users.
const SHOWN = new Set(["title", "aria-label", "aria-description", "placeholder", "label"]);
const RIGHT_TO_LEFT = "[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]+";
const RUNS = new RegExp(`(${RIGHT_TO_LEFT}(?:\\s+${RIGHT_TO_LEFT})*)`, "u");

/** Return a text with escapes for the characters that change the direction of what follows them. */
const escaped = (value) => String(value).replace(/\p{Bidi_Control}/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * Return a text where no element can be: a hint, a title. Parts that are written from right to left are between
 * characters that keep them from changing the order of the others.
 */
export const marked = (value) => escaped(value).split(RUNS).map((part, index) => (index % 2 ? `\u2068${part}\u2069` : part)).join("");

/** Return the parts of a text. Those that are written from right to left are in elements that isolate them. */
const isolated = (value, wrap) => escaped(value).split(RUNS).map((part, index) => (index % 2 ? wrap(new Text(part)) : part));
const inBdi = (part) => h("bdi", null, part);
const inSpan = (part) => svg("tspan", { class: "bdi" }, part);
const wrapperOf = (element) => (element instanceof HTMLElement ? (element.localName === "option" ? null : inBdi) : element.localName === "text" ? inSpan : null);

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      if (typeof value !== "function") throw new TypeError(`${name} must be a function`);
      element.addEventListener(name.slice(2), value);
    } else if (name === "href") {
      if (!/^(#|blob:)/.test(value)) throw new TypeError("an address that leads out of the page");
      element.setAttribute("href", value);
    } else if (name === "value") {
      element.value = value;
    } else if (name === "checked" || name === "disabled" || name === "open" || name === "selected") {
      element[name] = Boolean(value);
    } else {
      element.setAttribute(name, value === true ? "" : SHOWN.has(name) ? marked(value) : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    const wrap = wrapperOf(element);
    if (child instanceof Node) element.append(child);
    else if (wrap) element.append(...isolated(child, wrap));
    else element.append(marked(child));
  }
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** Replace the content of an element. */
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Replace the content of an element only if its data has changed: focus, selection and scrolling stay. */
export function show(element, shown, build) {
  const signature = typeof shown === "string" ? shown : JSON.stringify(shown);
  if (element.signature === signature) return;
  element.signature = signature;
  put(element, build());
}

export function text(element, value) {
  if (element.textContent !== (wrapperOf(element) ? escaped(value) : marked(value))) put(element, value);
}

/** Show a short message to the user. */
export function toast(message, kind = "done") {
  const note = h("div", { class: `toast ${kind}`, role: kind === "error" ? "alert" : null }, message);
  const box = document.getElementById("toasts");
  // An open dialog covers the rest of the page.
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.append(note);
  setTimeout(() => note.remove(), kind === "error" ? 8000 : 3500);
}

/** Have screen readers say a sentence; nothing is shown. */
export const announce = (sentence) => text(document.getElementById("said"), sentence);

/** Text for screen readers only. */
export const unseen = (label) => h("span", { class: "unseen" }, label);

/** Return a line icon of 16 × 16 pixels. */
export function icon(path) {
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, svg("path", { d: path }));
}

let count = 0;
export const uniqueId = (prefix) => `${prefix}-${++count}`;
