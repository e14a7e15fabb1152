// Messages of a queue: peek, get, publish, move.

import { get, post } from "./api.js";
import { h, put, text, toast } from "./dom.js";
import { form } from "./form.js";
import { exchangeName, exchangePart, number, octets, path } from "./format.js";
import { payloadView, preview, propertiesView } from "./payload.js";

const PEEKED = 50;
const TRUNCATE = 50000;

const PROPERTIES = [
  ["content_type", "string", "Media type of the payload, such as application/json"],
  ["message_id", "string", ""],
  ["correlation_id", "string", ""],
  ["reply_to", "string", ""],
  ["expiration", "string", "Milliseconds"],
  ["priority", "number", ""],
  ["type", "string", ""],
];

/** Return a list of messages; each expands to its payload and properties. */
function messageList(messages, first = 0) {
  return h(
    "ol",
    { class: "messages" },
    messages.map((one, index) =>
      h(
        "li",
        null,
        h(
          "details",
          { ontoggle: (event) => open(event.target, one) },
          h(
            "summary",
            null,
            h("span", { class: "at" }, number(one.offset ?? first + index)),
            h("span", { class: "from" }, h("b", null, one.routing_key === "" ? "(empty key)" : one.routing_key), h("small", null, exchangeName(one.exchange))),
            h("span", { class: "says" }, preview(one)),
            one.connection ? h("span", { class: "tag" }, `held by ${one.consumer_tag ?? "basic.get"}`) : null,
            one.redelivered ? h("span", { class: "tag", title: "Delivered before" }, "redelivered") : null,
            h("span", { class: "size" }, octets(one.payload_bytes)),
          ),
        ),
      ),
    ),
  );
}

/** Build the details when a message is opened for the first time. */
function open(element, one) {
  if (!element.open || element.querySelector(".message")) return;
  const holder = one.connection && h("p", null, "Delivered as ", h("b", null, number(one.delivery_tag)), " on ", h("a", { href: `#/channels/${path(`${one.connection} (${one.channel})`)}` }, `channel ${one.channel}`), " of ", h("a", { href: `#/connections/${path(one.connection)}` }, one.connection));
  element.append(h("div", { class: "message" }, holder, payloadView(one), propertiesView(one.properties)));
}

/** Return the form that publishes to an exchange; `queue` is the queue that certainly gets the message. */
export function publishForm({ vhost, exchange, queue = null, done = () => {} }) {
  return form({
    action: "Publish message",
    note: queue === null ? null : `Published to ${queue} through the default exchange.`,
    fields: [
      queue === null ? { name: "routing_key", label: "Routing key" } : null,
      { name: "delivery_mode", label: "Delivery mode", type: "select", options: [["2", "2 – persistent"], ["1", "1 – not persistent"]] },
      { name: "encoding", label: "Payload encoding", type: "select", options: [["string", "Text"], ["base64", "Base64"]] },
      { name: "headers", label: "Headers", type: "pairs", isWide: true },
      { name: "properties", label: "Properties", type: "pairs", hints: PROPERTIES, isWide: true },
      { name: "payload", label: "Payload", type: "area", isWide: true },
    ],
    submit: async (values) => {
      const properties = { ...values.properties, delivery_mode: Number(values.delivery_mode) };
      if (Object.keys(values.headers).length) properties.headers = values.headers;
      const answer = await post(`/api/exchanges/${path(vhost, exchangePart(exchange))}/publish`, {
        routing_key: queue ?? values.routing_key,
        properties,
        payload: values.payload,
        payload_encoding: values.encoding,
        vhost,
        name: exchange,
        props: properties,
      });
      if (answer.routed) toast("Message published");
      else toast("Message published, but not routed to a queue", "warning");
      done();
    },
  });
}

/** Return the messages part of a queue's page, with tabs. */
export function messagesPart(vhost, name, changed) {
  const address = path(vhost, name);
  const peek = peekView(address);
  const move = h("div", { class: "stack" }, moveForm(address, name, changed), returnForm(address, changed));
  const views = [
    ["Peek", peek.element, () => peek.load()],
    ["Get", getView(address, changed), null],
    ["Publish", publishForm({ vhost, exchange: "", queue: name, done: () => (changed(), peek.load()) }), null],
    ["Move", move, null],
  ];
  const tabs = views.map(([label], index) =>
    h("button", { type: "button", role: "tab", "aria-selected": "false", tabindex: -1, id: `tab-${label.toLowerCase()}`, "aria-controls": `panel-${label.toLowerCase()}`, onclick: () => choose(index) }, label),
  );
  const panels = views.map(([label, view]) => h("div", { role: "tabpanel", id: `panel-${label.toLowerCase()}`, "aria-labelledby": `tab-${label.toLowerCase()}`, hidden: true }, view));

  function choose(index, isFocused = false) {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === index));
      tab.tabIndex = at === index ? 0 : -1;
      panels[at].hidden = at !== index;
    });
    if (isFocused) tabs[index].focus();
    views[index][2]?.();
  }

  const list = h(
    "div",
    {
      role: "tablist",
      "aria-label": "Messages",
      class: "tabs",
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) choose((tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length, true);
      },
    },
    tabs,
  );
  choose(0);
  return {
    element: h("section", { class: "part" }, h("div", { class: "part-head" }, h("h2", null, "Messages"), list), panels),
    refresh: () => peek.load(),
    // Streams have no get and no move.
    setType: (type) => {
      tabs[1].hidden = tabs[3].hidden = type === "stream";
    },
  };
}

const STATES = [
  ["ready", "Ready"],
  ["unacked", "Unacked"],
  ["delayed", "Delayed"],
];

function peekView(address) {
  // Offsets of the previous pages.
  let before = [];
  let offset = 0;
  let next = null;
  let latest = 0;
  const found = h("div");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const range = h("span", { class: "muted" });
  const search = h("input", { type: "search", name: "search", placeholder: "Search keys, headers, payloads", "aria-label": "Search messages", spellcheck: "false" });
  const state = h("select", { "aria-label": "State of the messages", onchange: () => start() }, STATES.map(([value, label]) => h("option", { value }, label)));
  const back = h("button", { type: "button", onclick: () => go(before.pop(), before) }, "Previous");
  const forward = h("button", { type: "button", onclick: () => go(next, [...before, offset]) }, "Next");
  let typing = null;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(start, 200);
  });

  function go(to, past) {
    offset = to;
    before = past;
    return load();
  }

  function start() {
    return go(0, []);
  }

  async function load() {
    const mine = ++latest;
    const query = new URLSearchParams({ count: PEEKED, offset, truncate: TRUNCATE, state: state.value });
    if (search.value) query.set("search", search.value);
    try {
      const answer = await get(`/_broker/queues/${address}/peek?${query}`);
      if (mine !== latest) return;
      const { messages } = answer;
      next = answer.next;
      problem.hidden = true;
      put(found, messages.length ? messageList(messages) : h("div", { class: "empty" }, nothing()));
      text(range, messages.length ? `${number(messages[0].offset)} – ${number(messages[messages.length - 1].offset)}` : "");
      back.hidden = before.length === 0;
      forward.hidden = next === null;
    } catch (error) {
      problem.hidden = false;
      text(problem, error.message);
    }
  }

  function nothing() {
    if (search.value) return h("b", null, next === null ? "No message matches." : "No message in this part matches; continue with Next.");
    return [h("b", null, `No messages are ${state.value}.`), h("p", null, "New messages appear here after a refresh.")];
  }

  const bar = h("div", { class: "bar" }, search, state, h("button", { type: "button", onclick: () => load() }, "Refresh"), h("span", { class: "muted" }, "Peeking does not consume messages."), h("span", { class: "push" }, range, back, forward));
  return { element: h("div", null, bar, problem, found), load };
}

function getView(address, changed) {
  const found = h("div");
  return h(
    "div",
    null,
    form({
      action: "Get messages",
      note: "Gets messages from the queue. Requeued messages are marked as redelivered.",
      fields: [
        {
          name: "ackmode",
          label: "Ack mode",
          type: "select",
          options: [
            ["ack_requeue_true", "Nack message, requeue true"],
            ["ack_requeue_false", "Automatic ack"],
            ["reject_requeue_true", "Reject, requeue true"],
            ["reject_requeue_false", "Reject, requeue false"],
          ],
        },
        { name: "encoding", label: "Encoding", type: "select", options: [["auto", "Text, else base64"], ["base64", "Base64"]] },
        { name: "count", label: "Messages", type: "number", value: "1", min: 1, required: true },
      ],
      submit: async (values) => {
        const messages = await post(`/api/queues/${address}/get`, { ...values, truncate: TRUNCATE });
        put(found, messages.length ? messageList(messages) : h("div", { class: "empty" }, h("b", null, "The queue is empty.")));
        changed();
      },
    }),
    found,
  );
}

function moveForm(address, name, changed) {
  return form({
    action: "Move messages",
    note: "A message is removed from this queue after the other queue has it. Routing keys, headers and order are kept.",
    fields: [{ name: "destination", label: "To queue", required: true }, { name: "count", label: "Maximum", type: "number", min: 1, placeholder: "all" }],
    submit: async ({ destination, count }) => {
      const answer = await post(`/_broker/queues/${address}/move`, { destination: { queue: destination }, ...(count ? { count } : {}) });
      if (answer.reason) throw new Error(`${number(answer.moved)} messages moved, then: ${answer.reason}`);
      toast(`${number(answer.moved)} messages moved to ${destination}`);
      changed();
    },
  });
}

/** Return the form that moves dead letters back to the queues that gave them up. */
function returnForm(address, changed) {
  return form({
    action: "Return dead letters",
    note: "Each message goes to the end of the queue that gave it up last, which its header x-death names.",
    fields: [{ name: "count", label: "Maximum", type: "number", min: 1, placeholder: "all" }],
    submit: async ({ count }) => {
      const answer = await post(`/_broker/queues/${address}/return`, count ? { count } : {});
      if (answer.moved) changed();
      if (answer.reason) throw new Error(`${number(answer.moved)} messages returned, then: ${answer.reason}`);
      toast(`${number(answer.moved)} messages returned`);
    },
  });
}
