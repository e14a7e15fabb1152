import { get } from "../api.js";
import { deliveriesBy, publishesBy } from "../breakdown.js";
import { ObjectCharts } from "../chart.js";
import { h } from "../dom.js";
import { BLANK, limit, number, path, rate, toQueue } from "../format.js";
import { detail, list as listPage, part } from "../list.js";
import { MESSAGE_RATES, Rates, SAMPLED_MS, Samples } from "../live.js";
import { state } from "../state.js";
import { Facts, link, Table, tags } from "../table.js";
import { status } from "./connections.js";

const to = (name) => `#/channels/${path(name)}`;

const mode = (one) => tags(one.confirm && ["confirm", "The publisher asks for confirms"], one.transactional && ["tx", "Transactional"]);

const columns = () => [
  { title: "Channel", sort: "name", wide: true, isHead: true, value: (one) => link(one.name, to(one.name)) },
  { title: "Virtual host", sort: "vhost", value: (one) => one.vhost },
  { title: "User", sort: "user", value: (one) => one.user },
  { title: "Mode", value: mode },
  { title: "State", sort: "state", value: (one) => status(one.state) },
  { title: "Consumers", sort: "consumer_count", numeric: true, value: (one) => number(one.consumer_count) },
  { title: "Prefetch", sort: "prefetch_count", numeric: true, value: (one) => limit(one.prefetch_count) },
  { title: "Unacked", sort: "messages_unacknowledged", numeric: true, value: (one) => number(one.messages_unacknowledged) },
  { title: "Unconfirmed", sort: "messages_unconfirmed", numeric: true, value: (one) => number(one.messages_unconfirmed) },
  { title: "Publish", numeric: true, value: (one) => per(one, "publish") },
  { title: "Deliver", numeric: true, value: (one) => per(one, "deliver_get") },
  { title: "Ack", numeric: true, value: (one) => per(one, "ack") },
];

const per = (one, name) => {
  const value = one.rates?.[name] ?? one.message_stats?.[`${name}_details`]?.rate;
  return rate(value ?? 0);
};

function rated() {
  const rates = new Rates(SAMPLED_MS);
  return (items, now) => {
    for (const one of items) one.rates = rates.of(one.name, one.message_stats ?? {}, now);
  };
}

export function list() {
  return listPage({
    title: "Channels",
    path: () => (state.vhost ? `/api/vhosts/${path(state.vhost)}/channels` : "/api/channels"),
    kinds: ["channel", "consumer"],
    sort: "name",
    key: (one) => one.name,
    prepare: rated(),
    columns: columns(),
    empty: h("div", null, h("b", null, "No channels."), h("p", null, "Clients open them on their connections.")),
  });
}

/** A table of the channels of one connection. */
export function channelTable(empty) {
  const prepare = rated();
  const table = new Table({ label: "Channels", columns: columns(), key: (one) => one.name, empty });
  return {
    element: table.element,
    update: (items) => {
      prepare(items, performance.now());
      table.update(items);
    },
  };
}

/** A table of consumers. */
export function consumerTable(empty = "No consumers.") {
  return new Table({
    label: "Consumers",
    columns: [
      { title: "Channel", wide: true, value: (one) => (one.channel_details?.name ? link(one.channel_details.name, to(one.channel_details.name)) : BLANK) },
      { title: "Queue", value: (one) => (one.queue ? link(one.queue.name, toQueue(one.queue.vhost, one.queue.name)) : "") },
      { title: "Consumer tag", wide: true, value: (one) => one.consumer_tag },
      { title: "Acks", value: (one) => (one.ack_required ? "manual" : "automatic") },
      { title: "Exclusive", value: (one) => (one.exclusive ? "yes" : "") },
      { title: "Prefetch", numeric: true, value: (one) => limit(one.prefetch_count) },
      { title: "State", value: (one) => tags(one.activity_status && [one.activity_status.replace(/_/g, " "), "", one.active === false ? "" : "good"]) },
    ],
    key: (one) => `${one.channel_details?.name} ${one.consumer_tag}`,
    empty,
  });
}

export function one(name) {
  const facts = new Facts();
  const consumers = consumerTable("This channel consumes from no queue.");
  const prepare = rated();
  const publishes = publishesBy("Exchange");
  const deliveries = deliveriesBy("Queue");
  // The name that the client has given to its connection.
  let given;
  const charts = new ObjectCharts(
    [{ title: "Message rates", group: "message_stats", samples: new Samples(MESSAGE_RATES), isRate: true, height: 130 }],
    { refresh: () => page.refresh() },
  );
  const page = detail({
    title: name,
    kind: "Channel",
    back: ["Channels", "#/channels"],
    kinds: ["channel", "consumer"],
    load: async () => {
      const one = await get(charts.withSamples(`/api/channels/${path(name)}`));
      charts.draw(one);
      prepare([one], performance.now());
      const connection = one.connection_details?.name;
      given ??= await get(`/api/connections/${path(connection)}?columns=user_provided_name`).then((found) => found.user_provided_name || "", () => "");
      page.rename(given ? `Channel ${one.number} of ${given}` : name);
      facts.update([
        ["Connection", connection ? link(connection, `#/connections/${path(connection)}`) : null],
        ["Virtual host", one.vhost],
        ["User", one.user],
        ["State", status(one.state)],
        ["Mode", one.confirm || one.transactional ? mode(one) : "plain"],
        ["Prefetch", limit(one.prefetch_count)],
        ["Prefetch of all consumers", limit(one.global_prefetch_count)],
        ["Unacked", number(one.messages_unacknowledged)],
        ["Unconfirmed", number(one.messages_unconfirmed)],
        ["Uncommitted", number(one.messages_uncommitted)],
        ["Publish", per(one, "publish")],
        ["Deliver / get", per(one, "deliver_get")],
        ["Ack", per(one, "ack")],
      ]);
      consumers.update(one.consumer_details ?? []);
      publishes.update(one.publishes);
      deliveries.update(one.deliveries);
    },
    content: [
      part("Details", facts.element, h("div", { class: "charts" }, charts.elements)),
      part("Consumers", consumers.element),
      h("div", { class: "columns" }, publishes.element, deliveries.element),
    ],
  });
  return charts.on(page);
}
