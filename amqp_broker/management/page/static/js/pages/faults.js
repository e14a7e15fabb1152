import { post, remove } from "../api.js";
import { h, toast } from "../dom.js";
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
  ["latency", "Answer late"],
  ["duplicate", "Deliver twice"],
  ["delay_delivery", "Deliver late"],
  ["drop_ack", "Lose acks"],
];
const MOMENTS = [["", "Default of the action"], "now", "connect", "login", "open", "publish", "confirm", "deliver", "ack"];
const TEXTS = [
  ["exchange", "Exchange"],
  ["routing_key", "Routing key"],
  ["queue", "Queue"],
  ["user", "User"],
  ["connection", "Connection"],
];
const NUMBERS = [
  ["times", "Times", "Empty: unlimited"],
  ["after", "After", "Matches to let pass first"],
  ["probability", "Probability", "From 0 to 1"],
  ["seed", "Seed", ""],
  ["delay_ms", "Delay (ms)", "confirm_delay, delay_delivery, latency"],
  ["jitter_ms", "Jitter (ms)", "latency"],
  ["duration_ms", "Duration (ms)", "block"],
  ["code", "Reply code", "return, close_channel, close_connection"],
];
const COUNTS = ["id", "action", "on", "vhost", "matched", "hits", "is_spent"];

export function list() {
  const page = listPage({
    title: "Faults",
    path: () => "/_broker/faults",
    kinds: [],
    isPaged: false,
    sort: "id",
    key: (rule) => rule.id,
    columns: [
      { title: "Id", sort: "id", numeric: true, value: (rule) => rule.id },
      { title: "Action", isKept: true, sort: "action", value: (rule) => rule.action },
      { title: "On", sort: "on", value: (rule) => rule.on },
      { title: "Virtual host", sort: "vhost", value: (rule) => rule.vhost ?? "all" },
      { title: "Rule", wide: true, value: (rule) => cell(said(rule), () => h("code", null, plain(said(rule)))) },
      { title: "Matched", sort: "matched", numeric: true, value: (rule) => rule.matched },
      { title: "Hits", isKept: true, sort: "hits", numeric: true, value: (rule) => (rule.is_spent ? `${rule.hits} (spent)` : rule.hits) },
      { title: "", numeric: true, value: (rule) => cell(rule.id, () => h("button", { type: "button", class: "quiet small", onclick: () => end(rule) }, "Remove")) },
    ],
    actions: [
      h("button", { type: "button", onclick: clear }, "Remove all"),
      h("button", { type: "button", class: "primary", "data-key": "n", title: "n", onclick: add }, "Add fault"),
    ],
    empty: h("div", null, h("b", null, "No faults."), h("p", null, "Inject faults: nack publishes, lose confirms, cut sockets.")),
  });
  // The broker sends no events about hits.
  const timer = setInterval(() => document.hidden || page.refresh(), 1000);

  async function end(rule) {
    try {
      await remove(`/_broker/faults/${rule.id}`);
      toast(`Fault ${rule.id} was removed`);
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

  function add() {
    dialog({
      title: "Add a fault",
      action: "Add fault",
      note: "Names are globs (orders.*), or regular expressions after regex:. Empty fields match everything.",
      fields: [
        { name: "action", label: "Action", type: "select", options: ACTIONS.map(([name, what]) => [name, `${what} (${name})`]) },
        { name: "on", label: "When", type: "select", options: MOMENTS },
        { name: "vhost", label: "Virtual host", type: "select", options: [["", "All"], ...state.vhosts], value: state.newVhost },
        ...TEXTS.map(([name, label]) => ({ name, label })),
        ...NUMBERS.map(([name, label, help]) => ({ name, label, help, type: name === "probability" ? "text" : "number" })),
        { name: "text", label: "Text", help: "Reply text, or reason for blocking" },
        { name: "is_routed", label: "Route returned messages as well", type: "check" },
        { name: "is_mid_frame", label: "In the middle of a frame", type: "check" },
      ],
      submit: async (values) => {
        const rule = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== false));
        if ("probability" in rule) rule.probability = Number(rule.probability);
        const { id } = await post("/_broker/faults", rule);
        page.refresh();
        return id;
      },
      done: (values, answer) => `Fault ${answer ?? ""} was added`.replace("  ", " "),
    });
  }

  return {
    ...page,
    leave: () => {
      clearInterval(timer);
      page.leave();
    },
  };
}

const said = (rule) => Object.fromEntries(Object.entries(rule).filter(([name]) => !COUNTS.includes(name)));
