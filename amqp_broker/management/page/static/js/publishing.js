// Publishing a message: a form of an exchange or a queue, and a dialog for one that is edited and published again.

import { post } from "./api.js";
import { toast } from "./dom.js";
import { dialog, form } from "./form.js";
import { exchangePart, path } from "./format.js";
import { exchangesOf } from "./suggestions.js";

const PROPERTIES = [
  ["content_type", "string", "Media type of the payload, such as application/json"],
  ["message_id", "string", ""],
  ["correlation_id", "string", ""],
  ["reply_to", "string", ""],
  ["expiration", "string", "Milliseconds"],
  ["priority", "number", ""],
  ["type", "string", ""],
];
// Headers of a dead letter: a message that has them could be dropped as a cycle.
const DEATH = /^x-(death|(first|last)-death-.*)$/;

/** The fields of a message, with the values of another one. */
function fieldsOf(one = {}) {
  const { headers = {}, delivery_mode: mode = 2, ...properties } = Array.isArray(one.properties) ? {} : (one.properties ?? {});
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !DEATH.test(name)));
  return [
    { name: "delivery_mode", label: "Delivery mode", type: "select", options: [["2", "2 – persistent"], ["1", "1 – not persistent"]], value: String(mode) },
    { name: "encoding", label: "Payload encoding", type: "select", options: [["string", "Text"], ["base64", "Base64"]], value: one.payload_encoding ?? "string" },
    { name: "headers", label: "Headers", type: "pairs", isWide: true, value: kept },
    { name: "properties", label: "Properties", type: "pairs", hints: PROPERTIES, isWide: true, value: properties },
    { name: "payload", label: "Payload", type: "area", isWide: true, value: one.payload },
  ];
}

async function publish(vhost, exchange, key, values) {
  const properties = { ...values.properties, delivery_mode: Number(values.delivery_mode) };
  if (Object.keys(values.headers).length) properties.headers = values.headers;
  const answer = await post(`/api/exchanges/${path(vhost, exchangePart(exchange))}/publish`, {
    routing_key: key,
    properties,
    payload: values.payload,
    payload_encoding: values.encoding,
    vhost,
    name: exchange,
    props: properties,
  });
  if (answer.routed) toast("Message published");
  else toast("Message published, but not routed to a queue", "warning");
}

/** Return the form that publishes to an exchange; `queue` is the queue that certainly gets the message. */
export function publishForm({ vhost, exchange, queue = null, done = () => {} }) {
  return form({
    action: "Publish message",
    note: queue === null ? null : `Published to ${queue} through the default exchange.`,
    fields: [queue === null ? { name: "routing_key", label: "Routing key" } : null, ...fieldsOf()],
    submit: async (values) => {
      await publish(vhost, exchange, queue ?? values.routing_key, values);
      done();
    },
  });
}

/** Open a dialog that publishes a message again: where it was published first, if it has died. */
export function editAndPublish(vhost, one, done) {
  const deaths = one.properties?.headers?.["x-death"];
  const first = Array.isArray(deaths) ? deaths.at(-1) : null;
  const keys = first?.["routing-keys"];
  return dialog({
    title: "Edit and publish",
    action: "Publish message",
    note: "The message in the queue stays. Headers of its death are left out.",
    fields: [
      { name: "exchange", label: "Exchange", value: first?.exchange ?? one.exchange, placeholder: "(AMQP default)", suggest: exchangesOf(vhost) },
      { name: "routing_key", label: "Routing key", value: (Array.isArray(keys) ? keys[0] : null) ?? one.routing_key },
      ...fieldsOf(one),
    ],
    submit: async ({ exchange, routing_key: key, ...values }) => {
      await publish(vhost, exchange, key, values);
      done();
    },
  });
}
