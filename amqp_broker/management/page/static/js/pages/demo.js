// The confirm demo: a publisher under a fault plan, run by `amqp-broker demo confirms` on this broker.

import { get } from "../api.js";
import { h, put, text } from "../dom.js";
import { number } from "../format.js";
import { part } from "../list.js";
import { Table, cell, tag } from "../table.js";

const TICK_MS = 300;
const COMMAND = "amqp-broker demo confirms --management-port 15672";
const STATES = { over: ["over", ""], now: ["now", "bad"], "to come": ["to come", ""] };

export function page() {
  const what = h("p", { class: "note" });
  const confirmed = gauge("Confirmed");
  const flight = gauge("In flight");
  const median = gauge("Median confirm time");
  const p99 = gauge("99th percentile of confirms");
  const retries = gauge("Retries");
  const connection = gauge("Connection");
  const plan = new Table({
    label: "Fault plan",
    columns: [
      { title: "At message", numeric: true, value: (event) => number(event.at) },
      { title: "The broker", value: (event) => event.sentence },
      { title: "State", value: (event) => cell(event.state, () => tag(...STATES[event.state])) },
      { title: "Faults so far", numeric: true, value: (event) => `${event.hits} of ${event.times}` },
    ],
    key: (event) => `${event.at} ${event.sentence}`,
  });
  const results = new Table({
    label: "The proof",
    columns: [
      { title: "Strategy", value: (one) => one.strategy },
      { title: "Promise", wide: true, value: (one) => one.promise },
      { title: "Sent", numeric: true, value: (one) => number(one.sent) },
      { title: "Confirmed", numeric: true, value: (one) => number(one.confirmed) },
      { title: "In the queue", numeric: true, value: (one) => number(one.distinct) },
      { title: "Duplicates", numeric: true, value: (one) => number(one.duplicates) },
      { title: "Lost", wide: true, value: (one) => lost(one.lost) },
      { title: "Kept", value: (one) => cell(one.is_held, () => (one.is_held ? tag("held", "good") : tag("broken", "bad"))) },
    ],
    key: (one) => one.strategy,
    empty: "No strategy has finished yet.",
  });
  const shown = h(
    "div",
    { hidden: true },
    what,
    part("The publisher", h("div", { class: "gauges" }, [confirmed, flight, median, p99, retries, connection].map((one) => one.element))),
    part("Fault plan", plan.element),
    part("The proof: confirmed messages compared with the queue", results.element),
  );
  const none = h("div", { class: "empty", hidden: true });
  const element = h("section", null, h("div", { class: "title" }, h("h1", null, "Confirm Demo")), none, shown);

  function draw(demo) {
    text(what, `${demo.strategy} ${demo.sentence}. It promises: ${demo.promise}.`);
    confirmed.show(number(demo.confirmed), `of ${number(demo.messages)}`, demo.confirmed, demo.messages);
    flight.show(number(demo.in_flight), demo.window ? `of ${number(demo.window)}` : "no confirms awaited", demo.in_flight, demo.window ?? 0);
    median.show(latency(demo.median_ms));
    p99.show(latency(demo.p99_ms));
    const reasons = Object.entries(demo.retries);
    retries.show(number(reasons.reduce((sum, [, count]) => sum + count, 0)), reasons.map(([reason, count]) => `${count} ${reason}`).join(", "));
    connection.show(demo.connection, `connected ${number(demo.connects)} times`);
    plan.update(demo.plan);
    results.update(demo.results);
    shown.hidden = false;
    none.hidden = true;
  }

  async function refresh() {
    try {
      draw(await get("/_broker/demo"));
    } catch (error) {
      // A killed broker does not answer; the last figures stay.
      if (error.status !== 404) return;
      shown.hidden = true;
      if (none.hidden) put(none, h("b", null, "No demo is running."), h("p", null, "Start one with: "), h("code", null, COMMAND));
      none.hidden = false;
    }
  }

  refresh();
  const timer = setInterval(() => document.hidden || refresh(), TICK_MS);
  return { title: "Confirm Demo", element, refresh, leave: () => clearInterval(timer) };
}

/** A gauge: a name, a value, and the share of its limit. */
function gauge(label) {
  const value = h("b", null, "–");
  const note = h("small");
  const meter = h("meter", { min: 0, max: 1, value: 0, hidden: true });
  return {
    element: h("div", { class: "gauge" }, h("span", null, label), value, meter, note),
    show(now, said = "", count = 0, whole = 0) {
      text(value, now);
      text(note, said);
      meter.hidden = !whole;
      meter.value = whole ? count / whole : 0;
    },
  };
}

const latency = (ms) => (typeof ms === "number" ? `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms` : "–");
const lost = (reasons) => Object.entries(reasons).map(([reason, count]) => `${count} ${reason}`).join(", ") || "none";
