// The broker's clock: its time, with buttons that freeze and advance it.

import { get, post } from "../api.js";
import { h, text, toast } from "../dom.js";
import { confirm, form } from "../form.js";
import { counted, duration as lasting, path, toExchange, toQueue } from "../format.js";
import { part } from "../list.js";
import { state } from "../state.js";
import { link, Table } from "../table.js";

const TICK_MS = 1000;
const USUAL = ["1m", "30m", "1h", "1d"];
// The list of events costs the broker a walk over its queues: it is read less often, and ever less the longer it takes.
const DUE_MS = 3000;
const REST = 20;
const SHOWN = 20;
// The addresses of that to which an event happens.
const PLACES = {
  delayed_message: (one) => toExchange(one.vhost, one.name),
  consumer_cancelled: (one) => `#/connections/${path(one.name)}`,
  channel_closed: (one) => `#/connections/${path(one.name)}`,
};

export function page() {
  const mayMove = state.is("administrator");
  const now = h("dd", { class: "clock-now" });
  const real = h("dd");
  const offset = h("dd");
  const runs = h("dd");
  const hold = h("button", { type: "button", onclick: () => act(clock?.is_frozen ? "resume" : "freeze") }, "Freeze");
  let clock = null;
  let dueTimer = null;
  let isOver = false;
  const more = h("p", { class: "note" });
  const due = new Table({
    label: "Due next",
    columns: [
      { title: "Due", value: (one) => moment(one.at_ms) },
      { title: "Due in", isKept: true, numeric: true, value: (one) => lasting(Math.max(one.at_ms - (clock?.now_ms ?? one.at_ms), 0)) },
      { title: "Event", isKept: true, isHead: true, wide: true, value: (one) => one.sentence },
      { title: "Where", minor: true, value: (one) => link(one.name || "(AMQP default)", (PLACES[one.kind] ?? ((at) => toQueue(at.vhost, at.name)))(one)) },
    ],
    key: (one) => [one.kind, one.vhost, one.name, one.sentence].join("\n"),
    empty: "Nothing waits for its time.",
  });

  function show(value) {
    clock = value;
    text(now, moment(value.now_ms));
    text(real, moment(value.real_now_ms));
    text(offset, durationOf(value.offset_ms));
    text(runs, value.is_frozen ? "Frozen" : "Running");
    text(hold, value.is_frozen ? "Resume" : "Freeze");
  }

  async function refresh() {
    try {
      show(await get("/_broker/clock"));
    } catch (error) {
      text(runs, error.message);
    }
  }

  /** Read the events that come next, and again after a while. */
  async function refreshDue() {
    clearTimeout(dueTimer);
    const begun = performance.now();
    try {
      const coming = await get(`/_broker/clock/due?limit=${SHOWN}`);
      text(more, coming.total > SHOWN ? `… and ${counted(coming.total - SHOWN, "more event")}` : "");
      due.update(coming.events);
    } catch (error) {
      text(more, error.message);
    }
    clearTimeout(dueTimer);
    if (!isOver) dueTimer = setTimeout(refreshDue, Math.max(DUE_MS, REST * (performance.now() - begun)));
  }

  /** Advance the clock; ask first if that closes channels. */
  async function advanceBy(duration) {
    const go = async () => {
      show(await post("/_broker/clock/advance", { duration }));
      toast(`The clock was advanced by ${duration}`);
      refreshDue();
    };
    const closed = await get(`/_broker/clock/due?limit=1&kind=channel_closed&within=${encodeURIComponent(duration)}`);
    if (!closed.total) return go();
    confirm({
      title: `Advance the clock by ${duration}?`,
      note: `${counted(closed.total, "channel")} will be closed. ${closed.events[0].sentence}`,
      action: "Advance",
      submit: go,
    });
  }

  async function act(verb, body = {}) {
    try {
      show(await post(`/_broker/clock/${verb}`, body));
    } catch (error) {
      toast(error.message, "error");
    }
  }

  const advance = form({
    fields: [{ name: "duration", label: "Duration", value: "30m", required: true, help: "500ms, 30s, 30m, 1h30m, 2d" }],
    action: "Advance",
    submit: ({ duration }) => advanceBy(duration.trim()),
  });
  const element = h(
    "section",
    null,
    h("div", { class: "title" }, h("h1", null, "Clock"), mayMove && h("div", { class: "actions" }, USUAL.map((duration) => h("button", { type: "button", onclick: () => advanceBy(duration).catch((error) => toast(error.message, "error")) }, `+${duration}`)), hold)),
    h(
      "dl",
      { class: "pairs-view" },
      [["Broker's time", now], ["Real time", real], ["Offset", offset], ["", runs]].map(([name, value]) => h("div", null, h("dt", null, name), value)),
    ),
    h("p", { class: "note" }, "Message TTLs, queue expiry, delayed messages, consumer timeouts and stream retention use the broker's time. Heartbeats and the log use real time."),
    mayMove && h("div", { class: "card" }, advance),
    part("Due next", due.element, more),
  );
  const timer = setInterval(refresh, TICK_MS);
  const leave = () => {
    isOver = true;
    clearInterval(timer);
    clearTimeout(dueTimer);
  };
  return { title: "Clock", element, refresh: () => Promise.all([refresh(), refreshDue()]), leave };
}

const moment = (ms) => new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");

function durationOf(ms) {
  const sign = ms < 0 ? "-" : "+";
  let rest = Math.abs(ms);
  const parts = [];
  for (const [unit, size] of [["d", 86400000], ["h", 3600000], ["m", 60000]]) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)}${unit}`);
    rest %= size;
  }
  if (rest || !parts.length) parts.push(`${rest / 1000}s`);
  return sign + parts.join(" ");
}
