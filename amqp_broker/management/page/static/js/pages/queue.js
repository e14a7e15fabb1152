import { get, remove } from "../api.js";
import { bindingForm, bindingsPart } from "../bindings.js";
import { deliveriesBy, routedBy } from "../breakdown.js";
import { ObjectCharts } from "../chart.js";
import { h } from "../dom.js";
import { counted, date, listed, number, octets, path, plain } from "../format.js";
import { confirm } from "../form.js";
import { holdersPart } from "../holders.js";
import { lifePart } from "../life.js";
import { detail, part } from "../list.js";
import { Samples } from "../live.js";
import { capacity, messageSplit } from "../message_split.js";
import { messagesPart } from "../messages.js";
import { state } from "../state.js";
import { cell, Facts, link } from "../table.js";
import { features, type } from "./queues.js";

export function one(vhost, name) {
  const address = `/api/queues/${path(vhost, name)}`;
  const facts = new Facts();
  const queued = new Samples(["messages_ready", "messages_unacknowledged"]);
  const rated = new Samples(["publish", "deliver_get", "ack", "redeliver"]);
  const charts = new ObjectCharts(
    [
      { title: "Queued messages", samples: queued, height: 120 },
      { title: "Message rates", group: "message_stats", samples: rated, isRate: true, height: 120 },
    ],
    { refresh: () => page.refresh() },
  );
  const split = messageSplit();
  const centre = { kind: "queue", name, vhost, label: name };
  const bindings = bindingsPart(centre);
  const holders = holdersPart(vhost, name, charts);
  const incoming = routedBy("Exchange");
  const deliveries = deliveriesBy("Channel");
  const life = lifePart(vhost, name);
  let shown = { bindings: 0 };
  const messages = messagesPart(vhost, name, () => page.refresh());

  const page = detail({
    title: name,
    kind: "Queue",
    back: ["Queues and Streams", "#/queues"],
    kinds: ["queue", "binding", "consumer", "policy"],
    actions: [
      state.may("read", vhost, name) && h(
        "button",
        {
          type: "button",
          onclick: () =>
            confirm({
              title: `Purge ${name}?`,
              note: `${counted(shown.messages_ready ?? 0, "ready message")} will be lost. ${counted(shown.messages_unacknowledged ?? 0, "unacknowledged message")} will be kept.`,
              action: "Purge messages",
              submit: async () => {
                await remove(`${address}/contents`);
                page.refresh();
                messages.refresh();
              },
              done: `${name} was purged`,
            }),
        },
        "Purge",
      ),
      state.may("configure", vhost, name) && h(
        "button",
        {
          type: "button",
          class: "danger",
          onclick: () =>
            confirm({
              title: `Delete ${name}?`,
              note: `It has ${listed([shown.messages ?? 0, "message"], [shown.bindings, "binding"], [shown.consumers ?? 0, "consumer"])}, which will be removed.`,
              action: "Delete queue",
              submit: () => remove(address),
              done: () => {
                location.hash = "#/queues";
                return `Queue ${name} was deleted`;
              },
            }),
        },
        "Delete",
      ),
    ],
    load: async () => {
      const [one, bound] = await Promise.all([get(charts.withSamples(address)), get(`${address}/bindings`), holders.load()]);
      // Each queue has the binding of the default exchange.
      shown = { ...one, bindings: bound.filter((binding) => binding.source !== "").length };
      charts.draw(one);
      facts.update(factsOf(one, holders.oldest));
      split.update(one);
      bindings.update(bound);
      incoming.update(one.incoming);
      deliveries.update(one.deliveries);
      messages.setType(type(one));
    },
    content: [
      part("Overview", facts.element, h("div", { class: "below" }, split.element), h("div", { class: "charts" }, charts.elements)),
      holders.element,
      messages.element,
      life?.element,
      part("Bindings", bindings.element, bindingForm(centre, () => page.refresh())),
      h("div", { class: "columns" }, incoming.element, deliveries.element),
    ],
  });
  messages.refresh();
  life?.load();
  return charts.on(page);
}

function factsOf(one, oldest) {
  const definition = one.effective_policy_definition;
  const hasPolicy = definition && Object.keys(definition).length > 0;
  return [
    ["Ready", number(one.messages_ready ?? 0)],
    ["Unacked", number(one.messages_unacknowledged ?? 0)],
    ["Total", number(one.messages ?? 0)],
    ["Size", octets(one.message_bytes)],
    ["Consumers", number(one.consumers ?? 0)],
    ["Consumer capacity", capacity(one)],
    ["Virtual host", one.vhost],
    ["Type", type(one)],
    ["Features", features(one)],
    ["Arguments", cell(one.arguments ?? {}, () => h("code", null, plain(one.arguments ?? {})))],
    ["Policy", one.policy ? link(one.policy, "#/policies") : null],
    ["Set by policy", hasPolicy ? cell(definition, () => h("code", null, plain(definition))) : null],
    ["Owner", one.owner_pid_details?.name ? link(one.owner_pid_details.name, `#/connections/${path(one.owner_pid_details.name)}`) : null],
    ["Memory", octets(one.memory)],
    ["Oldest message", oldest],
    ["Head timestamp", date(one.head_message_timestamp ? one.head_message_timestamp * 1000 : null)],
  ];
}
