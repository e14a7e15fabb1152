// Feature flags, and the features of RabbitMQ that are deprecated.

import { get, set } from "../api.js";
import { h, show, toast } from "../dom.js";
import { list as listPage } from "../list.js";
import { follow } from "../live.js";
import { state } from "../state.js";
import { cell, tags } from "../table.js";

// Deprecated features, and their replacements.
const ABOUT = {
  amqp_address_v1: "Addresses of AMQP 1.0 in their first form. Use the second form.",
  amqp_filter_set_bug: "A wrong form of filters of AMQP 1.0. Use the form of the specification.",
  classic_queue_mirroring: "Copies of classic queues on other nodes. Use quorum queues.",
  global_qos: "A prefetch that all consumers of a channel share. Use one for each consumer.",
  management_metrics_collection: "Statistics in the HTTP API. Use Prometheus.",
  queue_master_locator: "The argument x-queue-master-locator. Use x-queue-leader-locator.",
  ram_node_type: "Nodes that keep definitions in memory only. Use disk nodes.",
  transient_nonexcl_queues: "Queues that are neither durable nor exclusive. Declare them durable or exclusive.",
};
const PHASES = { permitted_by_default: "permitted by default", denied_by_default: "denied by default", disconnected: "disconnected", removed: "removed" };

export function list() {
  const pages = [flags(), deprecated()];
  return {
    title: "Feature Flags",
    element: h("div", { class: "stack" }, pages.map((page) => page.element)),
    refresh: () => Promise.all(pages.map((page) => page.refresh())),
    leave: () => pages.forEach((page) => page.leave()),
  };
}

function flags() {
  const page = listPage({
    title: "Feature flags",
    path: () => "/api/feature-flags",
    kinds: [],
    isPaged: false,
    sort: "name",
    key: (flag) => flag.name,
    columns: [
      { title: "Name", sort: "name", wide: true, isHead: true, value: (flag) => flag.name },
      { title: "State", isKept: true, sort: "state", value: (flag) => cell(flag.state, () => stateOf(flag)) },
      { title: "Stability", sort: "stability", value: (flag) => flag.stability },
      { title: "Description", wide: true, value: (flag) => flag.desc },
    ],
  });

  function stateOf(flag) {
    if (flag.state === "enabled" || !state.is("administrator")) return tags([flag.state, "", flag.state === "enabled" ? "good" : ""]).build();
    return h("button", { type: "button", class: "small", onclick: () => enable(flag) }, "Enable");
  }

  async function enable(flag) {
    try {
      await set(`/api/feature-flags/${encodeURIComponent(flag.name)}/enable`);
      toast(`${flag.name} was enabled`);
    } catch (error) {
      toast(error.message, "error");
    }
    page.refresh();
  }

  return page;
}

function deprecated() {
  const banner = deprecatedBanner();
  const page = listPage({
    title: "Deprecated features",
    path: () => "/api/deprecated-features",
    kinds: ["queue"],
    isPaged: false,
    sort: "name",
    key: (feature) => feature.name,
    about: banner.element,
    columns: [
      { title: "Name", sort: "name", wide: true, isHead: true, value: (feature) => feature.name },
      { title: "State", isKept: true, sort: "state", value: (feature) => tags([feature.state]) },
      { title: "Phase", sort: "deprecation_phase", value: (feature) => PHASES[feature.deprecation_phase] ?? feature.deprecation_phase },
      { title: "Description", wide: true, value: (feature) => feature.desc || (ABOUT[feature.name] ?? "") },
    ],
  });
  return {
    ...page,
    refresh: () => Promise.all([page.refresh(), banner.refresh()]),
    leave: () => {
      page.leave();
      banner.leave();
    },
  };
}

/** Return a notice that names the deprecated features in use, if there are some. */
export function deprecatedBanner() {
  const element = h("div", { role: "status" });
  const following = follow(["queue"], async () => {
    const used = await get("/api/deprecated-features/used").catch(() => []);
    show(element, used.map((one) => one.name), () =>
      used.length
        ? h(
            "div",
            { class: "banner" },
            h("b", null, "Deprecated features are in use. A later version of RabbitMQ will not have them."),
            h("ul", null, used.map((one) => h("li", null, h("code", null, one.name), ABOUT[one.name] ? ` ${ABOUT[one.name]}` : ""))),
          )
        : [],
    );
  });
  return { element, refresh: following.run, leave: following.leave };
}
