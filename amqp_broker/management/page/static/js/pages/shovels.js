// Shovels, which move messages from one queue or exchange to another, here or on another broker.

import { remove, set } from "../api.js";
import { h, toast } from "../dom.js";
import { confirm, dialog } from "../form.js";
import { number, path } from "../format.js";
import { list as listPage } from "../list.js";
import { state } from "../state.js";
import { cell, tags } from "../table.js";

const ACK_MODES = [
  ["on-confirm", "When the destination has confirmed"],
  ["on-publish", "When published"],
  ["no-ack", "At once"],
];
const KINDS = { queue: "queue", exchange: "exchange" };

const at = (one) => `/api/shovels/vhost/${path(one.vhost, one.name)}`;
const place = (one, side) => one[`${side}_queue`] ?? one[`${side}_exchange`] ?? one[`${side}_address`] ?? "";

export function list() {
  const mayChange = state.is("policymaker");
  const page = listPage({
    title: "Shovels",
    path: () => state.listPath("shovels"),
    kinds: ["parameter", "vhost"],
    isPaged: false,
    sort: "name",
    key: (one) => `${one.vhost} ${one.name}`,
    columns: [
      { title: "Virtual host", sort: "vhost", value: (one) => one.vhost },
      { title: "Name", sort: "name", wide: true, isHead: true, value: (one) => one.name },
      { title: "State", isKept: true, sort: "state", value: (one) => tags([one.state, one.reason, one.state === "running" ? "good" : one.state === "starting" ? "" : "bad"]) },
      { title: "From", value: (one) => place(one, "src") },
      { title: "Source", minor: true, value: (one) => one.src_uri },
      { title: "To", value: (one) => place(one, "dest") },
      { title: "Destination", minor: true, value: (one) => one.dest_uri },
      { title: "Forwarded", sort: "forwarded", numeric: true, value: (one) => number(one.forwarded) },
      { title: "Reason", wide: true, minor: true, value: (one) => one.reason ?? "" },
      { title: "", numeric: true, value: (one) => (mayChange ? cell(`${one.vhost}\n${one.name}`, () => buttons(one)) : "") },
    ],
    actions: [mayChange && h("button", { type: "button", class: "primary", "data-key": "n", title: "n", onclick: add }, "Add shovel")],
    empty: h("div", null, h("b", null, "No shovels."), h("p", null, "A shovel moves messages from one queue or exchange to another, here or on another broker.")),
  });

  function buttons(one) {
    return [
      h("button", { type: "button", class: "quiet small", onclick: () => restart(one) }, "Restart"),
      h("button", { type: "button", class: "quiet small", onclick: () => end(one) }, "Delete"),
    ];
  }

  async function restart(one) {
    try {
      await remove(`${at(one)}/restart`);
      toast(`Shovel ${one.name} was restarted`);
    } catch (error) {
      toast(error.message, "error");
    }
    page.refresh();
  }

  function end(one) {
    confirm({
      title: `Delete shovel ${one.name}?`,
      note: "It moves no more messages. Those that it has not acknowledged stay in the source.",
      action: "Delete shovel",
      submit: async () => {
        await remove(at(one));
        page.refresh();
      },
      done: `Shovel ${one.name} was deleted`,
    });
  }

  function add() {
    dialog({
      title: "Add a shovel",
      action: "Add shovel",
      fields: [
        state.vhostField(state.is("administrator") ? state.vhosts : state.openVhosts),
        { name: "name", label: "Name", required: true },
        ...side("src", "Source"),
        { name: "src-exchange-key", label: "Source routing key", help: "For an exchange: the key of the binding" },
        ...side("dest", "Destination"),
        { name: "dest-exchange-key", label: "Destination routing key", help: "For an exchange. Empty: the key of the message" },
        { name: "src-prefetch-count", label: "Prefetch", type: "number", value: 1000 },
        { name: "reconnect-delay", label: "Reconnect delay (s)", type: "number", value: 5 },
        { name: "ack-mode", label: "Acknowledge", type: "select", options: ACK_MODES },
        { name: "src-delete-after", label: "End", type: "select", options: [["never", "Never"], ["queue-length", "When the messages that are there now have been moved"]] },
      ],
      submit: async (values) => {
        await set(`/api/parameters/shovel/${path(values.vhost, values.name)}`, { value: valueOf(values) });
        page.refresh();
      },
      done: ({ name }) => `Shovel ${name} was added`,
    });
  }

  return page;
}

/** Return the fields of one end of a shovel. */
const side = (name, label) => [
  { name: `${name}-uri`, label: `${label} URI`, value: "amqp://", required: true, help: "amqp:// is this broker" },
  { name: `${name}-kind`, label: `${label} is`, type: "select", options: [[KINDS.queue, "a queue"], [KINDS.exchange, "an exchange"]] },
  { name: `${name}-place`, label: `${label} name`, required: true },
];

/** Return the value of the parameter that defines a shovel. */
function valueOf({ vhost, name, ...given }) {
  const value = { "src-protocol": "amqp091", "dest-protocol": "amqp091" };
  for (const end of ["src", "dest"]) {
    value[`${end}-uri`] = given[`${end}-uri`];
    value[`${end}-${given[`${end}-kind`]}`] = given[`${end}-place`];
    const key = given[`${end}-exchange-key`];
    if (given[`${end}-kind`] === KINDS.exchange && key) value[`${end}-exchange-key`] = key;
  }
  for (const option of ["src-prefetch-count", "reconnect-delay", "ack-mode", "src-delete-after"]) if (given[option] !== undefined) value[option] = given[option];
  return value;
}
