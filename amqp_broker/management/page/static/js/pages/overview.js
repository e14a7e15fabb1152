import { get } from "../api.js";
import { attentionPart } from "../attention.js";
import { Chart, shownSpan } from "../chart.js";
import { churnPart, resetButton } from "../churn.js";
import { h, show, text } from "../dom.js";
import { BLANK, duration, number, octets, rate } from "../format.js";
import { part } from "../list.js";
import { memoryPart } from "../memory_use.js";
import { follow, live, MESSAGE_RATES, QUEUED, Samples } from "../live.js";
import { state } from "../state.js";
import { Table } from "../table.js";
import { deprecatedBanner } from "./feature_flags.js";

// Longer periods come from the broker, again each minute.
const LIVE_S = 600;
const RELOAD_MS = 60_000;
const TILES = [
  ["connections", "Connections", "#/connections"],
  ["channels", "Channels", "#/channels"],
  ["exchanges", "Exchanges", "#/exchanges"],
  ["queues", "Queues", "#/queues"],
  ["consumers", "Consumers", "#/channels"],
];

export function page() {
  const queued = new Chart({ title: "Queued messages", samples: live.queued, onspan: load });
  const rates = new Chart({ title: "Message rates", samples: live.messageRates, isRate: true, onspan: load });
  const past = { queued: new Samples(QUEUED), rates: new Samples(MESSAGE_RATES) };
  const counts = new Map(TILES.map(([name]) => [name, h("b", null, BLANK)]));
  const messages = h("b", null, BLANK);
  const flow = h("span");
  const tiles = h(
    "div",
    { class: "tiles" },
    h("a", { class: "tile wide", href: "#/queues" }, h("span", null, "Messages"), messages, flow),
    TILES.map(([name, label, href]) => h("a", { class: "tile", href }, h("span", null, label), counts.get(name))),
  );
  const nodes = h("div");
  const churn = churnPart();
  const memory = memoryPart();
  const banner = deprecatedBanner();
  // Only users with the tag monitoring may see all virtual hosts.
  const attention = state.is("monitoring") ? attentionPart() : null;
  const listeners = new Table({
    label: "Listening ports",
    columns: [
      { title: "Protocol", value: (one) => one.protocol },
      { title: "Bound to", value: (one) => one.ip_address },
      { title: "Port", numeric: true, value: (one) => one.port },
    ],
    key: (one) => `${one.protocol} ${one.ip_address} ${one.port}`,
  });
  const element = h(
    "section",
    { class: "overview" },
    h("div", { class: "title" }, h("h1", null, "Overview"), state.is("administrator") && h("div", { class: "actions" }, resetButton(() => live.load().then(load, () => {})))),
    attention?.element,
    banner.element,
    tiles,
    h("div", { class: "charts" }, queued.element, rates.element),
    // Only users with the tag monitoring may see the machine.
    state.is("monitoring") && h("div", { class: "columns" }, part("Node", nodes), part("Listening ports", listeners.element)),
    state.is("monitoring") && memory.element,
    churn.element,
  );

  /** Show what the page has heard live, or what the broker has kept for longer. */
  async function load() {
    const [age, step] = shownSpan();
    const isLive = age <= LIVE_S;
    if (!isLive) {
      const query = ["lengths", "msg_rates"].map((group) => `${group}_age=${age}&${group}_incr=${step}`).join("&");
      const found = await get(`/api/overview?${query}`).catch(() => null);
      if (!found || age !== shownSpan()[0]) return;
      past.queued.load(found.queue_totals, age);
      past.rates.load(found.message_stats, age, true);
    }
    queued.samples = isLive ? live.queued : past.queued;
    rates.samples = isLive ? live.messageRates : past.rates;
    queued.draw();
    rates.draw();
  }

  function draw(overview) {
    const totals = overview.queue_totals ?? {};
    text(messages, number(totals.messages ?? 0));
    text(flow, `in ${rate(live.rates.publish ?? 0)} · out ${rate(live.rates.deliver_get ?? 0)}`);
    for (const [name, place] of counts) text(place, number(overview.object_totals?.[name] ?? 0));
    listeners.update((overview.listeners ?? []).filter((one) => one.protocol !== "clustering"));
    queued.draw();
    rates.draw();
  }

  const leave = live.on((event, value) => event === "overview" && draw(value));
  const following = follow(["alarm", "queue", "connection", "channel"], async () => {
    churn.update((await get("/api/overview?columns=churn_rates")).churn_rates);
    const found = state.is("monitoring") ? await get("/api/nodes").catch(() => []) : [];
    show(nodes, found.map(shownOf), () => found.map(gauges));
    if (found.length) await memory.update(found[0].name);
  });
  const timer = setInterval(load, RELOAD_MS);
  load();
  if (live.overview) draw(live.overview);
  return {
    title: "Overview",
    element,
    refresh: () => Promise.all([following.run(), banner.refresh(), attention?.refresh()]),
    leave: () => {
      banner.leave();
      attention?.leave();
      leave();
      clearInterval(timer);
      following.leave();
      queued.leave();
      rates.leave();
    },
  };
}

const shownOf = (node) => [node.name, octets(node.mem_used), octets(node.disk_free), node.fd_used, node.mem_alarm, node.disk_free_alarm, Math.floor((node.uptime ?? 0) / 5000)];

function gauges(node) {
  return h(
    "div",
    { class: "gauges" },
    gauge("Memory", node.mem_used, node.mem_limit, octets, node.mem_alarm),
    gauge("File descriptors", node.fd_used, node.fd_total, number, false),
    h("div", { class: "gauge" }, h("span", null, "Disk free"), h("b", null, octets(node.disk_free)), h("small", null, node.disk_free_alarm ? "Alarm: below " : "alarm below ", octets(node.disk_free_limit))),
    h("div", { class: "gauge" }, h("span", null, "Uptime"), h("b", null, duration(node.uptime)), h("small", null, node.name)),
  );
}

function gauge(label, used, limit, format, isAlarm) {
  return h(
    "div",
    { class: `gauge ${isAlarm ? "alarmed" : ""}` },
    h("span", null, label),
    h("b", null, format(used)),
    limit ? h("meter", { min: 0, max: limit, value: used, high: limit * 0.8 }) : null,
    h("small", null, limit ? `of ${format(limit)}` : ""),
  );
}
