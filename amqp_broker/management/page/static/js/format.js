// Numbers, sizes and times in readable form.

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

// Instead of a value that is unknown, does not apply or was not given.
export const BLANK = "–";

export const number = (value) => (typeof value === "number" ? WHOLE.format(value) : BLANK);

/** Return a word as a head: with a capital. */
export const capital = (word) => `${word[0].toUpperCase()}${word.slice(1)}`;

/** Return a number of things: "1 message", "2 messages". */
export const counted = (count, thing) => `${number(count)} ${count === 1 ? thing : `${thing}s`}`;

/** Return several numbers of things: "12 messages, 2 bindings and 1 consumer". */
export function listed(...counts) {
  const parts = counts.map(([count, thing]) => counted(count, thing));
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** Return a rate per second; small rates are exact. */
export function rate(value) {
  if (typeof value !== "number" || !isFinite(value)) return BLANK;
  if (value === 0) return "0/s";
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : value < 10000 ? WHOLE.format(Math.round(value)) : SHORT.format(value)}/s`;
}

export function octets(value) {
  if (typeof value !== "number") return BLANK;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Return octets per second. */
export const speed = (value) => (typeof value === "number" ? `${octets(Math.round(value))}/s` : BLANK);

/** Return a limit of which 0 means that there is none. */
export const limit = (value) => (value === 0 ? "no limit" : number(value));

export function duration(ms) {
  if (typeof ms !== "number") return BLANK;
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const date = (ms) => (typeof ms === "number" ? new Date(ms).toLocaleString("sv-SE") : BLANK);

/** Return an AMQP field table as one line. */
export function plain(value) {
  if (value === null || value === undefined) return BLANK;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const enc = encodeURIComponent;
export const path = (...parts) => parts.map(enc).join("/");
export const exchangeName = (name) => (name === "" ? "(AMQP default)" : name);
export const exchangePart = (name) => (name === "" ? "amq.default" : name);
export const toQueue = (vhost, name) => `#/queues/${path(vhost, name)}`;
export const toExchange = (vhost, name) => `#/exchanges/${path(vhost, exchangePart(name))}`;
