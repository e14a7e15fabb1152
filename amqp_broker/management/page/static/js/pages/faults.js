import { get, post, remove } from "../api.js";
import { h, show, toast } from "../dom.js";
import { confirm, dialog } from "../form.js";
import { plain } from "../format.js";
import { list as listPage } from "../list.js";
import { state } from "../state.js";
import { cell } from "../table.js";

// Actions and their labels.
const ACTIONS = [
  ["confirm_nack", "Nack publishes"],
  ["confirm_drop", "Never confirm publishes"],
  ["confirm_delay", "Confirm publishes late"],
  ["return", "Return publishes"],
  ["close_channel", "Close the channel"],
  ["close_connection", "Close the connection"],
  ["cut", "Cut the socket"],
  ["reset", "Reset the socket"],
  ["black_hole", "Black hole"],
  ["refuse", "Refuse connections"],
  ["refuse_login", "Refuse logins"],
  ["block", "Block the connection"],
  ["unblock", "Unblock the connection"],
  ["cancel_consumer", "Cancel consumers"],
  ["stop_heartbeats", "Stop heartbeats"],
  ["latency", "Slow the connection by a delay"],
  ["bandwidth", "Slow the connection to a rate"],
  ["slow_close", "Answer connection.close late"],
  ["duplicate", "Deliver twice"],
  ["delay_delivery", "Deliver late"],
  ["hold_delivery", "Hold deliveries"],
  ["drop_ack", "Lose acks"],
  ["drop_dead_letter", "Lose dead letters"],
];
const MATCHES = [
  ["exchange", "Exchange"],
  ["routing_key", "Routing key"],
  ["queue", "Queue"],
  ["method", "Method"],
  ["user", "User"],
  ["connection", "Connection"],
];
const LIMITS = [
  ["times", "Times", "Empty: unlimited"],
  ["after", "After", "Matches to let pass first"],
  ["probability", "Probability", "From 0 to 1"],
  ["seed", "Seed", "Decides which matches are hits"],
];
const PARAMETERS = [
  ["delay_ms", "Delay (ms)"],
  ["jitter_ms", "Jitter (ms)", "Added to the delay, up to this time"],
  ["duration_ms", "Duration (ms)", "Empty: until the rule is removed"],
  ["bytes_per_s", "Octets per second"],
  ["code", "Reply code"],
];
const COUNTS = ["id", "action", "on", "vhost", "matched", "hits", "is_spent"];

export function list() {
  const page = listPage({
    title: "Faults",
    path: () => "/_broker/faults",
    kinds: [],
    isPaged: false,
    sort: "id",
    // The filter looks for its text in the keys.
    key: (rule) => JSON.stringify([rule.id, rule.action, rule.vhost ?? "all", said(rule)]),
    columns: [
      { title: "Id", minor: true, sort: "id", numeric: true, value: (rule) => rule.id },
      { title: "Action", isKept: true, sort: "action", value: (rule) => rule.action },
      { title: "On", sort: "on", value: (rule) => rule.on },
      { title: "Virtual host", sort: "vhost", value: (rule) => rule.vhost ?? "all" },
      { title: "Rule", wide: true, isKept: true, value: (rule) => cell(said(rule), () => said(rule).map(([name, value]) => h("div", null, h("code", null, `${name} ${plain(value)}`)))) },
      { title: "Matched", sort: "matched", numeric: true, value: (rule) => rule.matched },
      { title: "Hits", isKept: true, sort: "hits", numeric: true, value: (rule) => (rule.is_spent ? `${rule.hits} (spent)` : rule.hits) },
      { title: "", numeric: true, value: (rule) => cell([rule.id, rule.held > 0], () => buttons(rule)) },
    ],
    actions: [
      h("button", { type: "button", onclick: clear }, "Remove all"),
      h("button", { type: "button", class: "primary", "data-key": "n", title: "n", onclick: add }, "Add fault"),
    ],
    empty: h("div", null, h("b", null, "No faults."), h("p", null, "Inject faults: nack publishes, lose confirms, cut sockets.")),
  });
  // The broker sends no events about hits.
  const timer = setInterval(() => document.hidden || page.refresh(), 1000);

  const buttons = (rule) => [
    rule.held ? h("button", { type: "button", class: "quiet small", onclick: () => deliverOne(rule) }, "Deliver one") : null,
    h("button", { type: "button", class: "quiet small", onclick: () => end(rule) }, "Remove"),
  ];

  const end = (rule) => act(() => remove(`/_broker/faults/${rule.id}`), `Fault ${rule.id} was removed`);
  const deliverOne = (rule) => act(() => post(`/_broker/faults/${rule.id}/release`, {}), `Fault ${rule.id} let one message go`);

  async function act(request, done) {
    try {
      await request();
      toast(done);
    } catch (error) {
      toast(error.message, "error");
    }
    page.refresh();
  }

  function clear() {
    confirm({
      title: "Remove all faults?",
      note: "Their effects on connections will end.",
      action: "Remove",
      submit: async () => {
        await remove("/_broker/faults");
        page.refresh();
      },
      done: "All faults were removed",
    });
  }

  // The fields of each action at each moment. Until they are known, the form shows all fields.
  const actions = new Map();
  const learned = get("/_broker/fault-actions").then((all) => all.forEach((one) => actions.set(one.action, one)), (error) => toast(error.message, "error"));

  function add() {
    let shown = null;
    const opened = dialog({
      title: "Add a fault",
      action: "Add fault",
      note: "Names are globs (orders.*), or regular expressions after regex:. Empty fields match everything.",
      fields: [
        { name: "action", label: "Action", type: "select", options: ACTIONS.map(([name, what]) => [name, `${what} (${name})`]), onchange: fit },
        { name: "on", label: "When", type: "select", options: [["", "Default of the action"]], onchange: fit, help: "The moment at which the fault strikes" },
        { name: "vhost", label: "Virtual host", type: "select", options: [["", "All"], ...state.vhosts], value: state.newVhost },
        ...MATCHES.map(([name, label]) => ({ name, label })),
        ...PARAMETERS.map(([name, label, help]) => ({ name, label, help, type: "number" })),
        { name: "direction", label: "Direction", type: "select", options: [["", "Output of the broker"], ["input", "Input of the broker"]] },
        { name: "text", label: "Text", help: "Reply text, or reason for blocking" },
        { name: "is_routed", label: "Route returned messages as well", type: "check" },
        { name: "is_mid_frame", label: "In the middle of a frame", type: "check" },
        ...LIMITS.map(([name, label, help]) => ({ name, label, help, type: name === "probability" ? "text" : "number" })),
      ],
      submit: async (values) => {
        const rule = Object.fromEntries(Object.entries(values).filter(([name, value]) => (!shown || shown.has(name)) && value !== "" && value !== undefined && value !== false));
        if ("probability" in rule) rule.probability = Number(rule.probability);
        const { id } = await post("/_broker/faults", rule);
        page.refresh();
        return id;
      },
      done: (values, answer) => `Fault ${answer ?? ""} was added`.replace("  ", " "),
    });
    const { controls } = opened.querySelector("form");
    fit();
    learned.then(fit);

    /** Show the fields of the chosen action at the chosen moment. */
    function fit() {
      if (!actions.size) return;
      const action = actions.get(controls.action.control.value);
      const moments = Object.keys(action.on);
      show(controls.on.control, moments, () => moments.map((one) => h("option", { value: one }, one === "now" ? "now, once" : one)));
      const on = controls.on.control.value;
      const limits = on === "now" ? (action.may_have.includes("jitter_ms") ? ["seed"] : []) : LIMITS.map(([name]) => name);
      shown = new Set(["action", "on", ...action.on[on], ...action.needs, ...action.may_have, ...limits]);
      for (const [name, { element, control }] of Object.entries(controls)) {
        element.hidden = !shown.has(name);
        control.disabled = element.hidden;
        control.required = action.needs.includes(name);
      }
      controls.code.control.placeholder = action.code ?? "";
    }
  }

  return {
    ...page,
    leave: () => {
      clearInterval(timer);
      page.leave();
    },
  };
}

const said = (rule) => Object.entries(rule).filter(([name]) => !COUNTS.includes(name));
