import { get, remove } from "../api.js";
import { ObjectCharts } from "../chart.js";
import { h, show } from "../dom.js";
import { date, number, octets, path, speed } from "../format.js";
import { confirm } from "../form.js";
import { detail, list as listPage, part } from "../list.js";
import { Rates, Samples } from "../live.js";
import { state } from "../state.js";
import { Facts, link, tags } from "../table.js";
import { channelTable } from "./channels.js";

const to = (name) => `#/connections/${path(name)}`;
const statusKind = (status) => (status === "running" ? "good" : status === "idle" ? "" : "bad");
export const status = (value) => tags(value && [value, "", statusKind(value)]);
const product = (one) => [one.client_properties?.product, one.client_properties?.version].filter((part) => typeof part === "string").join(" ");

export function list() {
  const rates = new Rates();
  return listPage({
    title: "Connections",
    path: () => (state.vhost ? `/api/vhosts/${path(state.vhost)}/connections` : "/api/connections"),
    kinds: ["connection", "channel"],
    sort: "name",
    key: (one) => one.name,
    prepare: (items, now) => {
      for (const one of items) one.rates = rates.of(one.name, { recv: one.recv_oct, send: one.send_oct }, now);
    },
    columns: [
      { title: "Name", sort: "name", wide: true, isHead: true, value: (one) => link(one.user_provided_name || one.name, to(one.name)) },
      { title: "Virtual host", sort: "vhost", value: (one) => one.vhost },
      { title: "User", sort: "user", value: (one) => one.user },
      { title: "State", isKept: true, sort: "state", value: (one) => status(one.state) },
      { title: "TLS", value: (one) => (one.ssl ? "yes" : null) },
      { title: "Client", minor: true, value: product },
      { title: "Channels", sort: "channels", numeric: true, value: (one) => number(one.channels) },
      { title: "From client", numeric: true, value: (one) => speed(one.rates.recv ?? one.recv_oct_details?.rate) },
      { title: "To client", numeric: true, value: (one) => speed(one.rates.send ?? one.send_oct_details?.rate) },
    ],
    empty: h("div", null, h("b", null, "No connections."), h("p", null, "Clients appear here when they connect.")),
  });
}

export function one(name) {
  const facts = new Facts();
  const channels = channelTable("This connection has no channels.");
  const properties = h("pre", { class: "json", tabindex: 0 });
  const address = `/api/connections/${path(name)}`;
  const charts = new ObjectCharts(
    [{ title: "Octets", samples: new Samples(["recv_oct", "send_oct"]), isRate: true, format: speed, height: 130 }],
    { refresh: () => page.refresh() },
  );
  const forceClose = h(
    "button",
    {
      type: "button",
      class: "danger",
      hidden: true,
      onclick: () =>
        confirm({
          title: "Close this connection?",
          note: `The client ${name} gets CONNECTION_FORCED and may connect again.`,
          action: "Close connection",
          submit: () => remove(address),
          done: () => {
            location.hash = "#/connections";
            return "The connection was closed";
          },
        }),
    },
    "Force close",
  );
  const page = detail({
    title: name,
    kind: "Connection",
    back: ["Connections", "#/connections"],
    kinds: ["connection", "channel"],
    actions: [forceClose],
    load: async () => {
      const one = await get(charts.withSamples(address));
      charts.draw(one);
      page.rename(one.user_provided_name || name);
      forceClose.hidden = !state.is("administrator") && one.user !== state.user.name;
      facts.update([
        ["Name", name],
        ["Virtual host", one.vhost],
        ["User", one.user],
        ["State", status(one.state)],
        ["Client", product(one)],
        ["Connected", date(one.connected_at)],
        ["Protocol", one.protocol],
        ["Authentication", one.auth_mechanism],
        ["TLS", one.ssl ? `${one.ssl_protocol ?? "yes"}` : "no"],
        ["Heartbeat", one.timeout ? `${one.timeout} s` : "none"],
        ["Maximum frame size", octets(one.frame_max)],
        ["Channels", `${one.channels ?? 0} of ${one.channel_max || "any number"}`],
        ["From client", octets(one.recv_oct)],
        ["To client", octets(one.send_oct)],
      ]);
      channels.update(await get(`${address}/channels`));
      show(properties, one.client_properties, () => JSON.stringify(one.client_properties ?? {}, null, 2));
    },
    content: [part("Details", facts.element, h("div", { class: "charts" }, charts.elements)), part("Channels", channels.element), part("Client properties", properties)],
  });
  return charts.on(page);
}
