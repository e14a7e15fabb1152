// The consumers of a queue, and the messages that each holds: which of them holds the queue up.

import { get } from "./api.js";
import { h, text } from "./dom.js";
import { BLANK, duration, limit, number, path, rate } from "./format.js";
import { part } from "./list.js";
import { link, Table, tags } from "./table.js";

const keyOf = (one) => `${one.connection} ${one.channel} ${one.consumer_tag}`;

/** Return the growth per second between the last two samples of a counter. */
function rateOf({ samples = [] }) {
  const [last, before] = samples;
  return before ? ((last.sample - before.sample) * 1000) / (last.timestamp - before.timestamp) : null;
}

/** Return the part of a queue's page that lists its consumers, with the rates of its `charts`. */
export function holdersPart(vhost, name, charts) {
  let now = 0;
  const table = new Table({
    label: "Consumers",
    columns: [
      { title: "Consumer tag", isHead: true, isKept: true, wide: true, value: (one) => one.consumer_tag },
      { title: "Connection", isKept: true, wide: true, value: (one) => link(one.connection_name ?? one.connection, `#/connections/${path(one.connection)}`) },
      { title: "Unacked", isKept: true, numeric: true, value: (one) => (one.ack_required ? number(one.unacked) : "automatic") },
      { title: "Oldest unacked", isKept: true, numeric: true, value: (one) => (one.oldest_unacked_ms === null ? BLANK : duration(now - one.oldest_unacked_ms)) },
      { title: "Ack", numeric: true, value: (one) => (one.ack_required ? rate(rateOf(one.acked_details)) : BLANK) },
      { title: "Deliver", numeric: true, value: (one) => rate(rateOf(one.delivered_details)) },
      { title: "Prefetch", numeric: true, value: (one) => limit(one.prefetch_count) },
      { title: "State", minor: true, value: (one) => tags([one.activity_status.replace(/_/g, " "), "", one.activity_status === "waiting" ? "" : "good"]) },
      { title: "Channel", minor: true, value: (one) => link(String(one.channel), `#/channels/${path(`${one.connection} (${one.channel})`)}`) },
    ],
    key: keyOf,
    empty: "No consumers.",
  });
  const elsewhere = h("p", { class: "muted", hidden: true });
  let oldest = BLANK;
  return {
    /** How long the oldest ready message has been in the queue. */
    get oldest() {
      return oldest;
    },
    element: part("Consumers", table.element, elsewhere),
    load: async () => {
      const held = await get(charts.withRates(`/_broker/queues/${path(vhost, name)}/consumers`));
      now = held.now_ms;
      oldest = held.oldest_ready_ms === null ? BLANK : duration(now - held.oldest_ready_ms);
      table.update(held.consumers);
      elsewhere.hidden = held.unacked_elsewhere === 0;
      text(elsewhere, `${number(held.unacked_elsewhere)} more unacked were got by basic.get, or by consumers that are cancelled.`);
    },
  };
}
