// The confirm demo: a publisher under a fault plan, started here or by `amqp-broker demo confirms`.

import { get, post, remove } from "../api.js";
import { MessageGrid, seconds, TimeLine } from "../demo_drawing.js";
import { h, show, text, toast } from "../dom.js";
import { form } from "../form.js";
import { BLANK, counted, number } from "../format.js";
import { part } from "../list.js";
import { state } from "../state.js";
import { Table, cell, tag } from "../table.js";

const TICK_MS = 300;
const REST_MS = 2000;
const COMMAND = "amqp-broker demo confirms --management-port 15672";
const STATES = { running: ["running", "good"], stopping: ["stopping", ""], stopped: ["stopped", ""], done: ["done", ""], failed: ["failed", "bad"] };
const NUMBERS = {
  messages: ["Messages", "How many are published"],
  rate: ["Rate", "Publishes per second; 0: as fast as possible"],
  window: ["Window", "Unconfirmed messages at a time, for window and async"],
  seed: ["Seed", "Decides the order of the faults and their messages"],
};
const EVENTS = { over: ["over", ""], now: ["now", "bad"], "to come": ["to come", ""] };

export function page() {
  const what = h("p", { class: "note" });
  const confirmed = gauge("Confirmed");
  const flight = gauge("In flight");
  const median = gauge("Median confirm time");
  const p99 = gauge("99th percentile of confirms");
  const retries = gauge("Retries");
  const connection = gauge("Connection");
  const line = new TimeLine();
  const grid = new MessageGrid();
  const plan = new Table({
    label: "Fault plan",
    columns: [
      { title: "Before message", numeric: true, value: (event) => number(event.at) },
      { title: "The broker", wide: true, value: (event) => event.sentence },
      { title: "State", value: (event) => cell(event.state, () => tag(...EVENTS[event.state])) },
      { title: "Faults so far", numeric: true, value: (event) => `${event.hits} of ${event.times}` },
    ],
    key: (event) => `${event.at} ${event.sentence}`,
  });
  const results = new Table({
    label: "The proof",
    columns: [
      { title: "Strategy", isKept: true, isHead: true, value: (one) => one.strategy },
      { title: "Promise", wide: true, minor: true, value: (one) => one.promise },
      { title: "Took", numeric: true, value: (one) => seconds(one.elapsed_ms) },
      { title: "Sent", numeric: true, value: (one) => number(one.sent) },
      { title: "Confirmed", numeric: true, value: (one) => number(one.confirmed) },
      { title: "Retries", numeric: true, value: (one) => number(one.retries) },
      { title: "In the queue", numeric: true, value: (one) => number(one.distinct) },
      { title: "Duplicates", numeric: true, value: (one) => number(one.duplicates) },
      { title: "Lost", isKept: true, wide: true, value: lost },
      { title: "Median", numeric: true, value: (one) => latency(one.median_ms) },
      { title: "p99", numeric: true, value: (one) => latency(one.p99_ms) },
      { title: "Kept", isKept: true, value: (one) => cell(verdict(one), () => tag(...verdict(one))) },
    ],
    key: (one) => one.strategy,
    empty: "No strategy has finished yet.",
  });
  const shown = h(
    "div",
    { hidden: true },
    what,
    part("The publisher", h("div", { class: "gauges" }, [confirmed, flight, median, p99, retries, connection].map((one) => one.element))),
    part("Confirms and faults", line.element),
    part("Messages", grid.element),
    part("Fault plan", plan.element),
    part("The proof: confirmed messages compared with the queue", results.element),
  );
  const none = h("div", { class: "empty", hidden: true }, h("b", null, "No demo is running."), h("p", null, "Start one with: "), h("code", null, COMMAND));
  const condition = h("span", { role: "status" });
  const reason = h("p", { class: "problem", role: "alert", hidden: true });
  const stop = h("button", { type: "button", class: "danger", hidden: true, onclick: end }, "Stop");
  const chooser = h("div", { class: "card demo-choices", hidden: true });
  const element = h("section", null, h("div", { class: "title" }, h("h1", null, "Confirm Demo"), condition, h("div", { class: "actions" }, stop)), reason, none, shown, chooser);
  let timer = null;
  let isLeft = false;

  function draw(figures, isOver) {
    const end = isOver ? ` It ended after ${seconds(figures.elapsed_ms)}.` : "";
    text(what, `${figures.strategy} ${figures.sentence}. It promises: ${figures.promise}.${end}`);
    line.update(figures);
    grid.update(figures);
    confirmed.show(number(figures.confirmed), `of ${number(figures.messages)}`, figures.confirmed, figures.messages);
    flight.show(number(figures.in_flight), figures.window ? `of ${number(figures.window)}` : "no confirms awaited", figures.in_flight, figures.window ?? 0);
    median.show(latency(figures.median_ms));
    p99.show(latency(figures.p99_ms));
    const reasons = Object.entries(figures.retries);
    retries.show(number(reasons.reduce((sum, [, count]) => sum + count, 0)), reasons.map(([why, count]) => `${count} ${why}`).join(", "));
    connection.show(isOver ? "ended" : figures.connection, `connected ${counted(figures.connects, "time")}`);
    plan.update(figures.plan);
    // The strategy that is running is compared with those that have ended.
    const isRunning = !isOver && figures.results.every((one) => one.strategy !== figures.strategy);
    results.update(isRunning ? [...figures.results, running(figures)] : figures.results);
  }

  function drawState(demo) {
    const isBusy = demo.state === "running" || demo.state === "stopping";
    const mayStart = Boolean(demo.choices) && state.is("administrator");
    show(condition, demo.state, () => (STATES[demo.state] ? tag(...STATES[demo.state]) : []));
    reason.hidden = !demo.reason;
    text(reason, demo.reason ?? "");
    stop.hidden = !(mayStart && demo.state === "running");
    chooser.hidden = !mayStart || isBusy;
    if (mayStart) show(chooser, demo.choices, () => chooserOf(demo.choices));
    none.hidden = Boolean(demo.figures) || mayStart || isBusy;
    shown.hidden = !demo.figures;
    if (demo.figures) draw(demo.figures, !isBusy);
    return isBusy || !demo.choices;
  }

  function chooserOf(choices) {
    return form({
      action: "Start",
      note: "The demo publishes to this broker, in a virtual host of its own, confirm-demo, while the faults below strike it. The command amqp-broker demo confirms also kills and restarts its broker.",
      fields: [
        { name: "strategy", label: "Strategy", type: "select", isWide: true, value: "async", options: choices.strategies.map((one) => [one.name, `${one.name}: ${one.sentence}`]) },
        ...Object.entries(NUMBERS).map(([name, [label, help]]) => ({ name, label, help, type: "number", value: String(choices.numbers[name].usual) })),
        ...choices.faults.map((one) => ({ name: `fault ${one.name}`, label: `The broker ${one.sentence}`, type: "check", value: true })),
      ],
      submit: async (values) => {
        const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, values[name]]).filter(([, value]) => value !== undefined));
        const faults = choices.faults.map((one) => one.name).filter((name) => values[`fault ${name}`]);
        drawState(await post("/_broker/demo", { strategy: values.strategy, ...numbers, faults }));
        stop.focus();
        refresh();
      },
    });
  }

  async function end() {
    try {
      drawState(await remove("/_broker/demo"));
    } catch (error) {
      toast(error.message, "error");
    }
    refresh();
  }

  async function refresh() {
    clearTimeout(timer);
    let isLively = true;
    try {
      if (!document.hidden) isLively = drawState(await get("/_broker/demo"));
    } catch {
      // A killed broker does not answer; the last figures stay.
    }
    clearTimeout(timer);
    if (!isLeft) timer = setTimeout(refresh, isLively ? TICK_MS : REST_MS);
  }

  refresh();
  return { title: "Confirm Demo", element, refresh, leave: () => ((isLeft = true), clearTimeout(timer)) };
}

/** A gauge: a name, a value, and the share of its limit. */
function gauge(label) {
  const value = h("b", null, BLANK);
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

const latency = (ms) => (typeof ms === "number" ? `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms` : BLANK);
/** Return the row of a strategy that has not ended: what is unknown is blank. */
const running = (figures) => ({ ...figures, retries: Object.values(figures.retries).reduce((sum, count) => sum + count, 0), distinct: null, duplicates: null, lost: null });

function lost({ lost: reasons }) {
  if (reasons === null) return null;
  const counts = Object.entries(reasons);
  if (!counts.length) return "0";
  return `${number(counts.reduce((sum, [, count]) => sum + count, 0))}: ${counts.map(([reason, count]) => `${number(count)} ${reason}`).join(", ")}`;
}

/** Return the end of a strategy as a tag. */
function verdict(one) {
  if (one.is_held === undefined) return ["running", "good"];
  if (!one.is_held) return ["broken", "bad"];
  return Object.keys(one.lost).length && !one.promises_delivery ? ["promised nothing", ""] : ["held", "good"];
}
