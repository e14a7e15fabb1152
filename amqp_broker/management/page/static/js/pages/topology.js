// The map of a virtual host, which lights up where messages flow.

import { get } from "../api.js";
import { announce, h, text } from "../dom.js";
import { number, path, rate, toExchange, toQueue } from "../format.js";
import { part } from "../list.js";
import { follow, Rates } from "../live.js";
import { searchField } from "../search.js";
import { state } from "../state.js";
import { cell, link, Table } from "../table.js";
import { foldName, keysOf, nameOf, TopologyDrawing, wayKey, wayLabel } from "../topology_drawing.js";
import { WayFaults } from "../way_faults.js";

// How often the hits of faults are asked for: the broker sends no events about them.
const HITS_MS = 2000;
/** Return the way of publishes to an exchange, or of deliveries from a queue. */
const outer = (from, to, name) => ({
  source_kind: from,
  source: from === "queue" ? name : "",
  destination_kind: to,
  destination: to === "exchange" ? name : "",
  reason: from === "queue" ? "deliver" : "publish",
  keys: [],
  more_keys: 0,
});
// The same order whenever the map is asked for.
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

export function page() {
  const vhost = state.newVhost;
  const counters = new Rates();
  // Only an administrator may add faults.
  const faults = state.is("administrator") ? new WayFaults(vhost, () => following.run()) : null;
  const drawing = new TopologyDrawing({
    unfold: (exchange) => {
      search.value = exchange;
      search.focus();
      apply();
    },
    press: (way) => faults?.match(way) && (() => faults.ask(way, wayLabel(way))),
  });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const count = h("span", { class: "count" });
  const left = h("p", { class: "note map-note", hidden: true });
  const empty = h("div", { class: "empty", hidden: true });
  const search = searchField({ placeholder: "Filter", "aria-label": "Filter by the name of a queue or an exchange", title: "/", apply });
  let shown = new Map();
  // The names of folds in words.
  let folded = new Map();
  function end(kind, name) {
    if (kind === "fold") return folded.get(name);
    if (kind === "publishers" || kind === "consumers") return kind;
    return link(nameOf(kind, name), kind === "exchange" ? toExchange(vhost, name) : toQueue(vhost, name));
  }
  const table = new Table({
    label: "Ways",
    columns: [
      { title: "From", isKept: true, isHead: true, value: (one) => end(one.source_kind, one.source) },
      { title: "Routing keys", wide: true, value: (one) => keysOf(one) && cell(keysOf(one), () => h("code", null, keysOf(one))) },
      { title: "To", isKept: true, value: (one) => end(one.destination_kind, one.destination) },
      { title: "Messages", isKept: true, numeric: true, value: (one) => rate(shown.get(wayKey(one))) },
      ...(faults ? [{ title: "Faults", isKept: true, value: (one) => cell([wayKey(one), faults.on(one), faults.match(one)], () => faults.cell(one)) }] : []),
    ],
    key: wayKey,
    empty: "No bindings.",
  });

  async function apply() {
    await following.run();
    announce(count.textContent);
  }

  async function load() {
    // Without the rules the map is drawn all the same.
    const asked = await Promise.allSettled([get(`/_broker/topology/${path(vhost)}?${new URLSearchParams({ name: search.value })}`), faults?.load()]);
    const failed = asked.find((one) => one.status === "rejected");
    problem.hidden = !failed;
    text(problem, failed?.reason.message ?? "");
    if (asked[0].status === "fulfilled") draw(asked[0].value);
  }

  function draw(answer) {
    answer.exchanges.sort((one, other) => compare(one.name, other.name));
    answer.queues.sort((one, other) => compare(one.name, other.name));
    answer.ways.sort((one, other) => compare(wayKey(one), wayKey(other)));
    const now = performance.now();
    const known = new Set();
    // Unknown until the second look.
    const grown = (key, messages) => {
      known.add(key);
      return counters.of(key, { messages }, now).messages;
    };
    // The counts of a fold are compared only while the same queues are in it.
    const members = new Map(answer.folds.map((one) => [one.name, one.members]));
    const within = (kind, name) => (kind === "fold" ? members.get(name) : "");
    const rates = {
      exchange: (one) => grown(`in ${one.name}`, one.messages),
      queue: (one) => grown(`out ${one.name}`, one.delivered),
      fold: (one) => grown(`out of ${one.members} in ${one.name}`, one.delivered),
      way: (one) => grown(wayKey(one) + within(one.source_kind, one.source) + within(one.destination_kind, one.destination), one.messages),
    };
    // Publishes and deliveries are ways, too.
    const published = answer.exchanges.filter((one) => one.messages > 0).map((one) => outer("publishers", "exchange", one.name));
    const delivered = answer.queues.filter((one) => one.consumers > 0 || one.delivered > 0).map((one) => outer("queue", "consumers", one.name));
    const all = [...published, ...answer.ways, ...delivered];
    faults?.learn(answer.ways);
    shown = new Map(answer.ways.map((one) => [wayKey(one), rates.way(one)]));
    for (const one of answer.exchanges) shown.set(wayKey(outer("publishers", "exchange", one.name)), rates.exchange(one));
    for (const one of answer.queues) shown.set(wayKey(outer("queue", "consumers", one.name)), rates.queue(one));
    const isEmpty = !answer.exchanges.length && !answer.queues.length;
    empty.hidden = !isEmpty;
    drawing.frame.hidden = isEmpty;
    text(empty, search.value ? "No queue or exchange matches." : "This virtual host has no queues yet.");
    drawing.update(answer, vhost, rates, (way) => faults?.mark(way) ?? "");
    counters.keep(known);
    folded = new Map(answer.folds.map((one) => [one.name, foldName(one)]));
    table.update(all);
    const { queues, matching_queues: matching } = answer.totals;
    text(count, search.value ? `${number(matching)} of ${number(queues)} queues` : `${number(queues)} queues`);
    const rest = matching - answer.queues.length;
    left.hidden = rest <= 0;
    text(left, `${number(answer.queues.length)} queues are drawn: busy ones first, then those with messages, then those with bindings. ${number(rest)} more are folded by the exchanges that lead to them. Filter by a name to see others.`);
  }

  const following = follow(["exchange", "queue", "binding", "vhost", "policy"], load);
  const element = h(
    "section",
    { class: "stack map-page" },
    h(
      "div",
      null,
      h("div", { class: "title" }, h("h1", null, "Topology"), h("code", { class: "tag" }, vhost), count, h("div", { class: "actions" }, h("div", { class: "filter" }, search))),
      problem,
      left,
      h("p", { class: "note map-stand-in" }, "This screen is too narrow for the map; the table has all its ways."),
      empty,
      drawing.frame,
      h("p", { class: "note map-note" }, "Exchanges are round, queues are not. A way is lit while messages take it, and thicker from 10, 100 and 1 000 per second; dead letters take dashed ways, violet when lit."),
      faults && h("p", { class: "note map-note" }, "Press a way, or Add fault in the table, to slow, lose or nack what takes it."),
    ),
    part("Ways", table.element),
  );
  const hits = setInterval(() => !document.hidden && faults?.rules.length && following.run(), HITS_MS);
  return { title: "Topology", element, refresh: following.run, leave: () => (following.leave(), clearInterval(hits)) };
}
