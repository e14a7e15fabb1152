// Bindings of an exchange or a queue: drawn, listed, added and removed.

import { post, remove } from "./api.js";
import { diagram } from "./diagram.js";
import { h, show, toast } from "./dom.js";
import { form } from "./form.js";
import { exchangeName, exchangePart, path, plain, toExchange, toQueue } from "./format.js";
import { state } from "./state.js";
import { exchangesOf, queuesOf } from "./suggestions.js";
import { cell, link, Table } from "./table.js";

const letter = (kind) => (kind === "exchange" ? "e" : "q");

const mayBind = (vhost, source, destination) => state.may("read", vhost, source) && state.may("write", vhost, destination);

export function bindingsPart(centre) {
  // The end that is the same in all rows gives way first.
  const isQueue = centre.kind === "queue";
  const drawing = h("div");
  const table = new Table({
    label: "Bindings",
    columns: [
      { title: "From", minor: !isQueue, isHead: isQueue, value: (one) => link(exchangeName(one.source), toExchange(one.vhost, one.source)) },
      { title: "Routing key", wide: true, isKept: true, value: (one) => cell(`k${one.routing_key}`, () => (one.routing_key === "" ? h("span", { class: "muted" }, "(empty)") : h("code", null, one.routing_key))) },
      { title: "Arguments", value: (one) => (Object.keys(one.arguments).length ? cell(one.arguments, () => h("code", null, plain(one.arguments))) : "") },
      { title: "To", minor: isQueue, isHead: !isQueue, value: (one) => link(one.destination, one.destination_type === "exchange" ? toExchange(one.vhost, one.destination) : toQueue(one.vhost, one.destination)) },
      { title: "Kind", minor: true, value: (one) => one.destination_type },
      {
        title: "",
        numeric: true,
        value: (one) => (one.source === "" || !mayBind(one.vhost, one.source, one.destination) ? "" : cell("unbind", () => h("button", { type: "button", class: "quiet small", onclick: () => unbind(one) }, "Unbind"))),
      },
    ],
    key: (one) => [one.source, one.destination_type, one.destination, one.properties_key].join("\n"),
    empty: "No bindings.",
  });

  async function unbind(one) {
    try {
      await remove(`/api/bindings/${path(one.vhost)}/e/${path(exchangePart(one.source))}/${letter(one.destination_type)}/${path(one.destination, one.properties_key)}`);
      toast(`${one.destination} was unbound from ${exchangeName(one.source)}`);
    } catch (error) {
      toast(error.message, "error");
    }
  }

  return {
    element: h("div", { class: "bindings" }, drawing, table.element),
    update: (bindings) => {
      show(drawing, bindings, () => (bindings.length ? [diagram(centre, bindings)] : []));
      table.update(bindings);
    },
  };
}

/** Return the form that binds a queue or an exchange to an exchange; null if the user may not. */
export function bindingForm(centre, done) {
  const isQueue = centre.kind === "queue";
  if (!state.may(isQueue ? "write" : "read", centre.vhost, centre.name)) return null;
  const names = { queue: queuesOf(centre.vhost), exchange: exchangesOf(centre.vhost) };
  const fields = isQueue
    ? [{ name: "source", label: "From exchange", required: true, suggest: exchangesOf(centre.vhost) }]
    : [
        { name: "kind", label: "To", type: "select", options: [["queue", "Queue"], ["exchange", "Exchange"]] },
        { name: "destination", label: "Name", required: true, suggest: (typed) => names[element.controls.kind.read()](typed) },
      ];
  const element = form({
    fields: [
      ...fields,
      { name: "routing_key", label: "Routing key" },
      { name: "arguments", label: "Arguments", type: "pairs", isWide: true, hints: [["x-match", "string", "all or any, for headers exchanges"]] },
    ],
    action: "Bind",
    submit: async (values, where) => {
      const source = isQueue ? values.source : centre.name;
      const [kind, destination] = isQueue ? ["queue", centre.name] : [values.kind, values.destination];
      const address = `/api/bindings/${path(centre.vhost)}/e/${path(exchangePart(source))}/${letter(kind)}/${path(destination)}`;
      await post(address, { routing_key: values.routing_key, arguments: values.arguments });
      toast(`${destination} was bound to ${exchangeName(source)}`);
      where.reset();
      done();
    },
  });
  return h("details", { class: "more" }, h("summary", null, isQueue ? "Bind to an exchange" : "Bind a queue or an exchange"), element);
}
