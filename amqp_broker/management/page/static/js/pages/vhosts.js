import { get, remove, set } from "../api.js";
import { DAY_S, ObjectCharts } from "../chart.js";
import { h, text, toast } from "../dom.js";
import { confirm, dialog } from "../form.js";
import { counted, number, path } from "../format.js";
import { detail, list as listPage, part } from "../list.js";
import { MESSAGE_RATES, Samples } from "../live.js";
import { state } from "../state.js";
import { Facts, link, tags } from "../table.js";
import { permissionForm, permissionTable } from "./users.js";

const labels = (one) => tags(...(Array.isArray(one.tags) ? one.tags : []).map((label) => [label]));

export function list() {
  return listPage({
    title: "Virtual Hosts",
    path: () => "/api/vhosts",
    kinds: ["vhost", "permission"],
    isPaged: false,
    sort: "name",
    key: (one) => one.name,
    columns: [
      { title: "Name", sort: "name", wide: true, isHead: true, value: (one) => link(one.name, `#/vhosts/${path(one.name)}`) },
      { title: "Description", value: (one) => one.description ?? "" },
      { title: "Tags", value: labels },
      { title: "Default queue type", minor: true, value: (one) => (one.default_queue_type === "undefined" ? "" : (one.default_queue_type ?? "")) },
      { title: "Ready", sort: "messages_ready", numeric: true, value: (one) => number(one.messages_ready ?? 0) },
      { title: "Unacked", sort: "messages_unacknowledged", numeric: true, value: (one) => number(one.messages_unacknowledged ?? 0) },
      { title: "Total", isKept: true, sort: "messages", numeric: true, value: (one) => number(one.messages ?? 0) },
    ],
    actions: [state.is("administrator") && h("button", { type: "button", class: "primary", "data-key": "n", onclick: add, title: "n" }, "Add virtual host")],
  });
}

function add() {
  dialog({
    title: "Add a virtual host",
    action: "Add virtual host",
    fields: [
      { name: "name", label: "Name", required: true },
      { name: "description", label: "Description" },
      { name: "tags", label: "Tags", help: "Separated by commas" },
      { name: "default_queue_type", label: "Default queue type", type: "select", options: [["", "Default of the broker"], ["classic", "Classic"], ["quorum", "Quorum"], ["stream", "Stream"]] },
    ],
    submit: ({ name, default_queue_type: kind, ...rest }) => set(`/api/vhosts/${path(name)}`, kind ? { ...rest, default_queue_type: kind } : rest),
    done: ({ name }) => `Virtual host ${name} was added`,
  });
}

/** Return how much is in a virtual host. */
async function contents(name, shown) {
  const query = "page=1&page_size=1&columns=name&disable_stats=true";
  const queues = await get(`/api/queues/${path(name)}?${query}`).catch(() => null);
  if (!queues) return "Its exchanges, queues and messages";
  return `${counted(queues.total_count, "queue")} with ${counted(shown?.messages ?? 0, "message")}`;
}

export function one(name) {
  const address = `/api/vhosts/${path(name)}`;
  const facts = new Facts();
  const permissions = permissionTable("user", "User");
  const tracing = h("button", { type: "button", onclick: trace }, "Start tracing");
  let shown = null;

  async function trace() {
    try {
      // Fields that the body lacks would be as in a new virtual host.
      const { description, tags: labels, default_queue_type: kind, protected_from_deletion } = shown;
      const isTyped = kind && kind !== "undefined";
      await set(address, { description, tags: labels, protected_from_deletion, ...(isTyped ? { default_queue_type: kind } : {}), tracing: !shown.tracing });
      toast(shown.tracing ? "Tracing was stopped" : "Tracing was started: copies of messages go to amq.rabbitmq.trace");
    } catch (error) {
      toast(error.message, "error");
    }
    page.refresh();
  }

  const charts = new ObjectCharts(
    [
      { title: "Queued messages", samples: new Samples(["messages_ready", "messages_unacknowledged"]), height: 120 },
      { title: "Message rates", group: "message_stats", samples: new Samples(MESSAGE_RATES), isRate: true, height: 120 },
    ],
    { longest: DAY_S, refresh: () => page.refresh() },
  );
  const page = detail({
    title: name,
    kind: "Virtual host",
    back: ["Virtual Hosts", "#/vhosts"],
    kinds: ["vhost", "permission"],
    actions: [
      state.is("administrator") && tracing,
      state.is("administrator") &&
        h(
          "button",
          {
            type: "button",
            class: "danger",
            onclick: async () =>
              confirm({
                title: `Delete virtual host ${name}?`,
                note: `${await contents(name, shown)} will be deleted, and its connections closed.`,
                action: "Delete virtual host",
                submit: () => remove(address),
                done: () => {
                  location.hash = "#/vhosts";
                  return `Virtual host ${name} was deleted`;
                },
              }),
          },
          "Delete",
        ),
    ],
    load: async () => {
      const one = await get(charts.withSamples(address));
      charts.draw(one);
      shown = one;
      text(tracing, one.tracing ? "Stop tracing" : "Start tracing");
      facts.update([
        ["Description", one.description],
        ["Tags", labels(one)],
        ["Default queue type", one.default_queue_type && one.default_queue_type !== "undefined" ? one.default_queue_type : "classic"],
        ["Tracing", one.tracing ? "on" : "off"],
        ["Ready", number(one.messages_ready ?? 0)],
        ["Unacked", number(one.messages_unacknowledged ?? 0)],
      ]);
      if (state.is("administrator")) permissions.update(await get(`${address}/permissions`).catch(() => []));
    },
    content: [part("Details", facts.element, h("div", { class: "charts" }, charts.elements)), state.is("administrator") && part("Permissions", permissions.element, permissionForm({ vhost: name, done: () => page.refresh() }))],
  });
  return charts.on(page);
}
