// Live updates: server-sent events, read with fetch, which can send the login.

import { ask, get, logOut } from "./api.js";

const RECONNECT_MS = 1000;
const SAMPLES_MAX = 720;
const HISTORY_S = 600;
// The broker sends something each second.
const SILENT_MS = 4000;

/** Calls `on(event, value)` for each event, and reconnects until it is closed. `onState(isOpen, reason, status)`. */
export function listen(query, on, onState = () => {}) {
  const control = new AbortController();
  (async () => {
    while (!control.signal.aborted) {
      let reason = "";
      try {
        const response = await ask(`/_broker/events?${query}`, control.signal);
        if (!response.ok) {
          reason = (await response.json().catch(() => ({}))).reason ?? response.statusText;
          onState(false, reason, response.status);
          if (response.status < 500) return;
        } else {
          onState(true, "");
          await read(response.body.getReader(), on);
        }
      } catch (error) {
        if (control.signal.aborted) return;
        if (!(error instanceof TypeError)) console.error(error);
      }
      onState(false, reason);
      await new Promise((done) => setTimeout(done, RECONNECT_MS));
    }
  })();
  // A page in the back/forward cache of the browser receives no events.
  addEventListener("pagehide", () => control.abort(), { once: true });
  return () => control.abort();
}

async function read(reader, on) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const [first, second] = frame.split("\n");
      on(first.slice("event: ".length), JSON.parse(second.slice("data: ".length)));
    }
  }
}

// The broker takes samples this often: rates over a shorter time would contradict the charts beside them.
export const SAMPLED_MS = 5000;

/** Rates of counters; remembers the values of each key, up to the first that are older than `windowMs`. */
export class Rates {
  constructor(windowMs = 0) {
    this.windowMs = windowMs;
    this.last = new Map();
  }

  /** Return rates per second by the names of the counters; {} the first time. */
  of(key, stats, atMs) {
    const past = this.last.get(key) ?? [];
    const newest = past.at(-1);
    if (newest?.atMs === atMs) return newest.rates;
    while (past.length > 1 && past[1].atMs <= atMs - this.windowMs) past.shift();
    const [before] = past;
    const rates = {};
    if (before && atMs > before.atMs) {
      for (const [name, value] of Object.entries(stats)) {
        if (typeof value !== "number") continue;
        const grown = value - (before.stats[name] ?? 0);
        rates[name] = grown < 0 ? 0 : (grown * 1000) / (atMs - before.atMs);
      }
    }
    past.push({ stats, atMs, rates });
    this.last.set(key, past);
    return rates;
  }

  /** Forget all keys but these. */
  keep(keys) {
    for (const key of this.last.keys()) if (!keys.has(key)) this.last.delete(key);
  }
}

/** Return the rates that an answer of the broker has. */
function ratesIn(stats = {}) {
  const found = Object.entries(stats).filter(([, value]) => typeof value?.rate === "number");
  return Object.fromEntries(found.map(([name, value]) => [name.replace(/_details$/, ""), value.rate]));
}

/** Samples: times in seconds, and a row of numbers for each series. */
export class Samples {
  constructor(series) {
    this.series = series;
    this.times = [];
    this.rows = series.map(() => []);
  }

  add(values, atMs = Date.now()) {
    this.times.push(atMs / 1000);
    this.rows.forEach((row, index) => row.push(values[this.series[index]] ?? 0));
    if (this.times.length > SAMPLES_MAX) {
      this.times.shift();
      for (const row of this.rows) row.shift();
    }
  }

  /** Take the broker's samples of the last seconds instead; with `isRate`, the growth per second between two. */
  load(stats, durationS, isRate = false) {
    this.times = [];
    this.rows = this.series.map(() => []);
    const past = historyOf(stats);
    // Counters that have never been more than 0 are not in the answer.
    if (!past.length) past.push(...[durationS * 1000, 0].map((ageMs) => [Date.now() - ageMs, {}]));
    const rates = new Rates();
    for (const [atMs, values] of past) {
      // The first sample has no rate.
      const isFirst = rates.last.size === 0;
      const shown = isRate ? rates.of("", values, atMs) : values;
      if (!isRate || !isFirst) this.add(shown, atMs);
    }
  }
}

/** Return the counters of an object at each time of its samples, oldest first. */
function historyOf(group = {}) {
  const found = new Map();
  for (const [key, details] of Object.entries(group)) {
    for (const { sample, timestamp } of details?.samples ?? []) {
      if (!found.has(timestamp)) found.set(timestamp, {});
      found.get(timestamp)[key.replace(/_details$/, "")] = sample;
    }
  }
  return [...found].sort(([one], [other]) => one - other);
}

export const MESSAGE_RATES = ["publish", "deliver_get", "ack", "confirm", "redeliver", "return_unroutable", "drop_unroutable"];
export const QUEUED = ["messages_ready", "messages_unacknowledged"];

/** State of the broker that all pages share. */
class Live {
  constructor() {
    this.listeners = new Set();
    this.reset();
  }

  reset() {
    this.overview = null;
    this.isOpen = false;
    this.isPaused = false;
    // The time of the last event, by performance.now().
    this.heardAt = null;
    this.activity = 0;
    this.mark = "";
    this.rates = {};
    this.counters = new Rates();
    this.messageRates = new Samples(MESSAGE_RATES);
    this.queued = new Samples(QUEUED);
  }

  /** Load the samples of the broker, so that charts do not start empty. */
  async load() {
    const query = ["lengths", "msg_rates"].map((group) => `${group}_age=${HISTORY_S}&${group}_incr=5`).join("&");
    const past = await get(`/api/overview?${query}`);
    this.messageRates.load(past.message_stats, HISTORY_S, true);
    this.queued.load(past.queue_totals, HISTORY_S);
  }

  async start() {
    this.stop?.();
    const started = (this.stop = () => {});
    // The charts start empty then.
    await this.load().catch(() => {});
    if (this.stop !== started) return;
    this.stop = listen(
      "streams=overview,topology",
      (event, value) => this.hear(event, value),
      (isOpen, reason, status) => {
        if (status === 401) {
          logOut();
          return;
        }
        this.isOpen = isOpen;
        this.tell("state", isOpen);
      },
    );
  }

  end() {
    this.stop?.();
    this.stop = null;
    this.reset();
  }

  /** Return for how long nothing has come from the broker, in ms; null if that is not long, or if nothing ever came. */
  get silentMs() {
    if (this.heardAt === null) return null;
    const silent = performance.now() - this.heardAt;
    return this.isOpen && silent < SILENT_MS ? null : silent;
  }

  hear(event, value) {
    this.heardAt = performance.now();
    if (event === "overview") {
      this.overview = value;
      const isFirst = this.counters.last.size === 0;
      const rates = this.counters.of("overview", value.message_stats ?? {}, value.at_ms);
      // Until there are two updates, the broker's own rates continue the history.
      this.rates = isFirst ? ratesIn(value.message_stats) : rates;
      this.messageRates.add(this.rates);
      this.queued.add(value.queue_totals ?? {});
      const mark = JSON.stringify([value.message_stats, value.queue_totals, value.object_totals]);
      if (mark !== this.mark) this.activity += 1;
      this.mark = mark;
    }
    if (event === "topology") this.activity += 1;
    if (!this.isPaused) this.tell(event, value);
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.tell("state", this.isOpen);
  }

  tell(event, value) {
    for (const listener of [...this.listeners]) listener(event, value);
  }

  /** Call the listener for events; return a function that ends this. */
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const live = new Live();

// Fetch repeatedly while a page is open: at once after a change of these kinds, each second while messages flow, and
// seldom otherwise. An answer that takes long is requested less often; the first one takes long because the page is
// being opened.
export function follow(kinds, fetch) {
  let isRunning = false;
  let isWanted = false;
  let isLeft = false;
  let isFirst = true;
  let nextAt = 0;
  let seen = -1;
  async function run() {
    if (isLeft) return;
    if (isRunning) {
      isWanted = true;
      return;
    }
    isRunning = true;
    isWanted = false;
    seen = live.activity;
    const began = performance.now();
    try {
      await fetch();
    } finally {
      isRunning = false;
      const took = isFirst ? 0 : performance.now() - began;
      isFirst = false;
      nextAt = performance.now() + Math.min(10000, Math.max(900, 40 * took));
    }
    if (isWanted) setTimeout(run, 200);
  }
  const leave = live.on((event, value) => {
    if (document.hidden) return;
    if (event === "topology" && value.changed.some((kind) => kinds.includes(kind))) run();
    if (event === "overview") {
      const now = performance.now();
      if (now >= nextAt && (live.activity !== seen || now >= nextAt + 4000)) run();
    }
  });
  return {
    run,
    leave: () => {
      isLeft = true;
      leave();
    },
  };
}
