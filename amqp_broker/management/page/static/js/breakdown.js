// Counters of a queue, an exchange or a channel, by the objects that messages come from or go to.

import { exchangeName, number, path, rate, toExchange, toQueue } from "./format.js";
import { part } from "./list.js";
import { Rates, SAMPLED_MS } from "./live.js";
import { link, Table } from "./table.js";

const PUBLISHED = [
  ["publish", "Published"],
  ["confirm", "Confirmed"],
  ["return_unroutable", "Returned"],
  ["drop_unroutable", "Dropped"],
];
const DELIVERED = [
  ["deliver_get", "Delivered"],
  ["ack", "Acked"],
  ["redeliver", "Redelivered"],
];

const name = (one) => {
  if (one.queue) return link(one.queue.name, toQueue(one.queue.vhost, one.queue.name));
  if (one.exchange) return link(exchangeName(one.exchange.name), toExchange(one.exchange.vhost, one.exchange.name));
  return link(one.channel_details.name, `#/channels/${path(one.channel_details.name)}`);
};
const keyOf = (one) => one.channel_details?.name ?? `${(one.queue ?? one.exchange).vhost} ${(one.queue ?? one.exchange).name}`;

function breakdown(title, head, counters, empty) {
  const rates = new Rates(SAMPLED_MS);
  const per = (counter) => (one) => {
    const total = one.stats?.[counter] ?? 0;
    const now = one.rates[counter] ?? 0;
    return total === 0 ? null : now === 0 ? number(total) : `${number(total)} · ${rate(now)}`;
  };
  const table = new Table({
    label: title,
    columns: [
      { title: head, isHead: true, isKept: true, wide: true, value: name },
      ...counters.map(([counter, label]) => ({ title: label, numeric: true, value: per(counter) })),
    ],
    key: keyOf,
    empty,
  });
  return {
    element: part(title, table.element),
    update: (items = []) => {
      const now = performance.now();
      for (const one of items) one.rates = rates.of(keyOf(one), one.stats ?? {}, now);
      rates.keep(new Set(items.map(keyOf)));
      table.update(items);
    },
  };
}

/** Publishes of a channel by exchange, or of an exchange by channel. */
export const publishesBy = (head) => breakdown(`Publishes by ${head.toLowerCase()}`, head, PUBLISHED, "No publishes.");

/** Messages that a queue got by exchange, or that an exchange routed by queue. */
export const routedBy = (head) => breakdown(`Messages by ${head.toLowerCase()}`, head, PUBLISHED.slice(0, 1), "No messages.");

/** Deliveries by channel or queue. */
export const deliveriesBy = (head) => breakdown(`Deliveries by ${head.toLowerCase()}`, head, DELIVERED, "No deliveries.");
