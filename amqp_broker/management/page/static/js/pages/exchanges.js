import { get, remove, set } from "../api.js";
import { publishesBy, routedBy } from "../breakdown.js";
import { ObjectCharts } from "../chart.js";
import { h } from "../dom.js";
import { counted, exchangeName, exchangePart, number, path, plain, rate, toExchange } from "../format.js";
import { confirm, dialog } from "../form.js";
import { detail, list as listPage, part } from "../list.js";
import { live, Rates, Samples } from "../live.js";
import { state } from "../state.js";
import { cell, Facts, link, tags } from "../table.js";
import { bindingForm, bindingsPart } from "../bindings.js";
import { publishForm } from "../publishing.js";

const TYPES = ["direct", "fanout", "topic", "headers"];
const ARGUMENTS = [
  ["alternate-exchange", "string", "Gets messages that this exchange cannot route"],
  ["x-delayed-type", "string", "Routing type of an x-delayed-message exchange"],
  ["x-cache-size", "number", "Headers that an x-message-deduplication exchange remembers"],
];

const features = (one) =>
  tags(
    one.durable && ["D", "Durable: survives a restart"],
    one.auto_delete && ["AD", "Auto-delete: deleted with its last binding"],
    one.internal && ["I", "Internal: clients cannot publish to it"],
    one.arguments?.["alternate-exchange"] !== undefined && ["AE", `Alternate exchange: ${plain(one.arguments["alternate-exchange"])}`],
    one.policy && [one.policy, "Policy", "policy"],
  );

export function list() {
  const rates = new Rates();
  const per = (name) => (one) => {
    const value = one.rates[name] ?? one.message_stats?.[`${name}_details`]?.rate;
    return rate(value ?? 0);
  };
  return listPage({
    title: "Exchanges",
    path: () => state.listPath("exchanges"),
    kinds: ["exchange", "policy", "vhost"],
    sort: "name",
    key: (one) => `${one.vhost} ${one.name}`,
    prepare: (items, now) => {
      for (const one of items) one.rates = rates.of(`${one.vhost} ${one.name}`, one.message_stats ?? {}, now);
    },
    columns: [
      { title: "Virtual host", sort: "vhost", value: (one) => one.vhost },
      { title: "Name", sort: "name", wide: true, isHead: true, value: (one) => link(exchangeName(one.name), toExchange(one.vhost, one.name)) },
      { title: "Type", sort: "type", value: (one) => one.type },
      { title: "Features", value: features },
      { title: "In", help: "Published to it, per second", sort: "message_stats.publish_in", numeric: true, value: per("publish_in") },
      { title: "Out", help: "Routed to queues, per second", sort: "message_stats.publish_out", numeric: true, value: per("publish_out") },
    ],
    actions: [state.openVhosts.length > 0 && h("button", { type: "button", class: "primary", "data-key": "n", onclick: add, title: "n" }, "Add exchange")],
    empty: h("div", null, h("b", null, "No exchange matches.")),
  });
}

async function add() {
  const overview = live.overview?.exchange_types ?? [];
  const types = [...new Set([...TYPES, ...overview.map((one) => one.name)])];
  dialog({
    title: "Add an exchange",
    action: "Add exchange",
    fields: [
      state.vhostField(state.openVhosts),
      { name: "name", label: "Name", required: true },
      { name: "type", label: "Type", type: "select", options: types },
      { name: "durable", label: "Durable", type: "check", value: true },
      { name: "auto_delete", label: "Auto-delete", type: "check" },
      { name: "internal", label: "Internal", type: "check" },
      { name: "arguments", label: "Arguments", type: "pairs", hints: ARGUMENTS, isWide: true },
    ],
    submit: ({ vhost, name, ...rest }) => set(`/api/exchanges/${path(vhost, name)}`, rest),
    done: ({ name }) => `Exchange ${name} was added`,
  });
}

export function one(vhost, given) {
  const name = given === "amq.default" ? "" : given;
  const address = `/api/exchanges/${path(vhost, exchangePart(name))}`;
  const facts = new Facts();
  const samples = new Samples(["publish_in", "publish_out", "return_unroutable", "drop_unroutable"]);
  const charts = new ObjectCharts([{ title: "Message rates", group: "message_stats", samples, isRate: true, height: 130 }], {
    refresh: () => page.refresh(),
  });
  const centre = { kind: "exchange", name, vhost, label: exchangeName(name) };
  const bindings = bindingsPart(centre);
  let bound = 0;
  const incoming = publishesBy("Channel");
  const outgoing = routedBy("Queue");
  const isOurs = name !== "" && !name.startsWith("amq.");
  const page = detail({
    title: exchangeName(name),
    kind: "Exchange",
    back: ["Exchanges", "#/exchanges"],
    kinds: ["exchange", "binding", "policy"],
    actions: [
      isOurs &&
        state.may("configure", vhost, name) &&
        h(
          "button",
          {
            type: "button",
            class: "danger",
            onclick: () =>
              confirm({
                title: `Delete exchange ${name}?`,
                note: `It has ${counted(bound, "binding")}, which will be deleted.`,
                action: "Delete exchange",
                submit: () => remove(address),
                done: () => {
                  location.hash = "#/exchanges";
                  return `Exchange ${name} was deleted`;
                },
              }),
          },
          "Delete",
        ),
    ],
    load: async () => {
      const lost = `/_broker/unroutable/${path(vhost, exchangePart(name))}`;
      const [one, { message_stats: unroutable }] = await Promise.all([get(charts.withSamples(address)), get(charts.withSamples(lost))]);
      const stats = { ...one.message_stats, ...unroutable };
      charts.draw({ ...one, message_stats: stats });
      facts.update([
        ["Virtual host", vhost],
        ["Type", one.type],
        ["Features", features(one)],
        ["Policy", one.policy],
        ["Arguments", cell(one.arguments ?? {}, () => h("code", null, plain(one.arguments ?? {})))],
        ["Published in", number(stats.publish_in ?? 0)],
        ["Published out", number(stats.publish_out ?? 0)],
        ["Unroutable, returned", number(stats.return_unroutable ?? 0)],
        ["Unroutable, dropped", number(stats.drop_unroutable ?? 0)],
      ]);
      incoming.update(one.incoming);
      outgoing.update(one.outgoing);
      if (name === "") return;
      const [into, from] = await Promise.all([get(`${address}/bindings/destination`), get(`${address}/bindings/source`)]);
      bound = into.length + from.length;
      bindings.update([...into, ...from]);
    },
    content: [
      h("div", { class: "charts side" }, part("Details", facts.element), charts.elements),
      part(
        "Bindings",
        name === ""
          ? h("p", { class: "note" }, "Every queue is bound to the default exchange with its name as the routing key. These bindings cannot be changed.")
          : [bindings.element, bindingForm(centre, () => page.refresh())],
      ),
      h("div", { class: "columns" }, incoming.element, outgoing.element),
      name.startsWith("amq.rabbitmq.") || !state.may("write", vhost, name) ? null : part("Publish message", publishForm({ vhost, exchange: name })),
    ],
  });
  return charts.on(page);
}
