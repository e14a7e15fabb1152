// The broker's clock: its time, with buttons that freeze and advance it.

import { get, post } from "../api.js";
import { h, text, toast } from "../dom.js";
import { form } from "../form.js";
import { state } from "../state.js";

const TICK_MS = 1000;
const USUAL = ["1m", "30m", "1h", "1d"];

export function page() {
  const mayMove = state.is("administrator");
  const now = h("dd", { class: "clock-now" });
  const real = h("dd");
  const offset = h("dd");
  const runs = h("dd");
  const hold = h("button", { type: "button", onclick: () => act(clock?.is_frozen ? "resume" : "freeze") }, "Freeze");
  let clock = null;

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
    submit: async ({ duration }) => {
      show(await post("/_broker/clock/advance", { duration: duration.trim() }));
      toast(`The clock was advanced by ${duration.trim()}`);
    },
  });
  const element = h(
    "section",
    null,
    h("div", { class: "title" }, h("h1", null, "Clock"), mayMove && h("div", { class: "actions" }, USUAL.map((duration) => h("button", { type: "button", onclick: () => act("advance", { duration }) }, `+${duration}`)), hold)),
    h(
      "dl",
      { class: "pairs-view" },
      [["Broker's time", now], ["Real time", real], ["Offset", offset], ["", runs]].map(([name, value]) => h("div", null, h("dt", null, name), value)),
    ),
    h("p", { class: "note" }, "Message TTLs, queue expiry, delayed messages, consumer timeouts and stream retention use the broker's time. Heartbeats and the log use real time."),
    mayMove && h("div", { class: "card" }, advance),
  );
  refresh();
  const timer = setInterval(refresh, TICK_MS);
  return { title: "Clock", element, refresh, leave: () => clearInterval(timer) };
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
