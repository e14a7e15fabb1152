import { set } from "../api.js";
import { h } from "../dom.js";
import { number, path, plain, rate, toQueue } from "../format.js";
import { dialog } from "../form.js";
import { list as listPage } from "../list.js";
import { Rates } from "../live.js";
import { state } from "../state.js";
import { link, tags } from "../table.js";
import { status } from "./connections.js";

const ARGUMENTS = [
  ["x-message-ttl", "number", "Time to live of messages (ms)"],
  ["x-expires", "number", "Time until an unused queue is deleted (ms)"],
  ["x-max-length", "number", "Maximum number of messages"],
  ["x-max-length-bytes", "number", "Maximum size in octets"],
  ["x-overflow", "string", "drop-head, reject-publish or reject-publish-dlx"],
  ["x-dead-letter-exchange", "string", "Exchange for rejected and expired messages"],
  ["x-dead-letter-routing-key", "string", "Routing key of dead letters"],
  ["x-single-active-consumer", "boolean", "Only one consumer is active at a time"],
  ["x-max-priority", "number", "Number of priorities"],
  ["x-message-deduplication", "boolean", "Duplicates are dropped (classic queues)"],
  ["x-delivery-limit", "number", "Maximum number of deliveries (quorum queues)"],
  ["x-max-age", "string", "Retention of a stream: 7D, 12h"],
];

const SHORT = {
  "x-message-ttl": "TTL",
  "x-expires": "Exp",
  "x-max-length": "Lim",
  "x-max-length-bytes": "Lim B",
  "x-overflow": "Ovfl",
  "x-dead-letter-exchange": "DLX",
  "x-dead-letter-routing-key": "DLK",
  "x-single-active-consumer": "SAC",
  "x-max-priority": "Pri",
  "x-delivery-limit": "DLim",
  "x-max-age": "Age",
};

/** Return a queue's properties in the short forms of RabbitMQ's page. */
export const features = (one) =>
  tags(
    one.durable && ["D", "Durable: survives a restart"],
    one.auto_delete && ["AD", "Auto-delete: deleted with its last consumer"],
    one.exclusive && ["Excl", "Exclusive: belongs to one connection"],
    ...Object.entries(one.arguments ?? {})
      .filter(([name]) => name !== "x-queue-type")
      .map(([name, value]) => [SHORT[name] ?? name, `${name}: ${plain(value)}`]),
    one.policy && [one.policy, `Policy: ${plain(one.effective_policy_definition ?? "")}`, "policy"],
    one.operator_policy && [one.operator_policy, "Operator policy", "policy"],
  );

export const type = (one) => one.type ?? one.arguments?.["x-queue-type"] ?? "classic";

export function list() {
  const rates = new Rates();
  const per = (name) => (one) => {
    const value = one.rates[name] ?? one.message_stats?.[`${name}_details`]?.rate;
    return rate(value ?? 0);
  };
  return listPage({
    title: "Queues and Streams",
    path: () => state.listPath("queues"),
    kinds: ["queue", "policy", "vhost", "consumer"],
    sort: "name",
    key: (one) => `${one.vhost} ${one.name}`,
    prepare: (items, now) => {
      for (const one of items) one.rates = rates.of(`${one.vhost} ${one.name}`, one.message_stats ?? {}, now);
    },
    columns: [
      { title: "Virtual host", sort: "vhost", minor: state.vhost !== "", value: (one) => one.vhost },
      { title: "Name", sort: "name", wide: true, isHead: true, value: (one) => link(one.name, toQueue(one.vhost, one.name)) },
      { title: "Type", sort: "type", minor: true, value: type },
      { title: "Features", minor: true, value: features },
      { title: "State", sort: "state", value: (one) => status(one.state) },
      { title: "Ready", isKept: true, sort: "messages_ready", numeric: true, value: (one) => number(one.messages_ready ?? 0) },
      { title: "Unacked", isKept: true, sort: "messages_unacknowledged", numeric: true, value: (one) => number(one.messages_unacknowledged ?? 0) },
      { title: "Total", sort: "messages", numeric: true, value: (one) => number(one.messages ?? 0) },
      { title: "Consumers", isKept: true, sort: "consumers", numeric: true, value: (one) => number(one.consumers ?? 0) },
      { title: "Incoming", sort: "message_stats.publish_details.rate", numeric: true, value: per("publish") },
      { title: "Deliver / get", sort: "message_stats.deliver_get_details.rate", numeric: true, value: per("deliver_get") },
      { title: "Ack", sort: "message_stats.ack_details.rate", numeric: true, value: per("ack") },
    ],
    actions: [state.openVhosts.length > 0 && h("button", { type: "button", class: "primary", "data-key": "n", onclick: add, title: "n" }, "Add queue")],
    empty: h("div", null, h("b", null, "No queues."), h("p", null, "Clients declare them, or add one here.")),
  });
}

function add() {
  dialog({
    title: "Add a queue or a stream",
    action: "Add queue",
    fields: [
      state.vhostField(state.openVhosts),
      { name: "type", label: "Type", type: "select", options: [["", "Default"], ["classic", "Classic"], ["quorum", "Quorum"], ["stream", "Stream"]] },
      { name: "name", label: "Name", required: true },
      { name: "durable", label: "Durable", type: "check", value: true },
      { name: "auto_delete", label: "Auto-delete", type: "check" },
      { name: "arguments", label: "Arguments", type: "pairs", hints: ARGUMENTS, isWide: true },
    ],
    submit: ({ vhost, name, type: kind, ...rest }) => {
      if (kind) rest.arguments["x-queue-type"] = kind;
      return set(`/api/queues/${path(vhost, name)}`, rest);
    },
    done: ({ name }) => `Queue ${name} was added`,
  });
}
