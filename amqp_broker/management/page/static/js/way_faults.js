// Faults on the ways of the map: slow, lose or nack what goes there, until the rule ends or is removed.

import { get, post, remove } from "./api.js";
import { h, toast } from "./dom.js";
import { dialog } from "./form.js";
import { exchangePart, number } from "./format.js";

const SLOW_MS = 200;
// The faults of a publish, of a delivery and of a dead letter: a name, what the mark on the way says, and the rule.
const PUBLISHES = [
  ["slow", `Confirm ${SLOW_MS} ms late`, { action: "confirm_delay", delay_ms: SLOW_MS }],
  ["lose", "Lose the next confirm", { action: "confirm_drop", times: 1 }],
  ["nack", "Nack about every tenth", { action: "confirm_nack", probability: 0.1 }],
];
const DELIVERIES = [
  ["slow", `Deliver ${SLOW_MS} ms late`, { action: "delay_delivery", delay_ms: SLOW_MS }],
  ["twice", "Deliver the next one twice", { action: "duplicate", times: 1 }],
  ["lose", "Lose the next ack", { action: "drop_ack", times: 1 }],
];
const LETTERS = [["lose", "Lose the next dead letter", { action: "drop_dead_letter", times: 1 }]];
const SHORT = { confirm_delay: "late", confirm_drop: "confirm lost", confirm_nack: "nacked", delay_delivery: "late", duplicate: "twice", drop_ack: "ack lost", drop_dead_letter: "lost" };

/** Return a pattern of a rule that matches this name alone. */
export function exactly(name) {
  if (name.startsWith("regex:")) return `regex:${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`;
  return name.replace(/[*?\\]/g, "\\$&");
}

/** Return the faults that a way can have. */
function choicesOf({ reason }) {
  if (reason === "deliver") return DELIVERIES;
  return reason === "dead letters" ? LETTERS : PUBLISHES;
}

/**
 * Return what a rule matches on a way; null where none can: between exchanges, and at folds. A publish has the exchange
 * that its client named, so one that gets messages from others is not compared.
 */
function matchOf(way, isBound) {
  if (way.source_kind === "queue") return { queue: exactly(way.source) };
  if (way.source_kind === "publishers") return { exchange: exactly(exchangePart(way.destination)) };
  if (way.source_kind !== "exchange" || way.destination_kind !== "queue") return null;
  const queue = exactly(way.destination);
  return isBound(way.source) ? { queue } : { queue, exchange: exactly(exchangePart(way.source)) };
}

export class WayFaults {
  constructor(vhost, refresh) {
    this.vhost = vhost;
    this.refresh = refresh;
    this.rules = [];
    this.bound = new Set();
  }

  /** Learn the rules that are on. */
  async load() {
    this.rules = (await get("/_broker/faults")).filter((rule) => rule.vhost === this.vhost && !rule.is_spent);
  }

  /** Learn which exchanges get messages from others. */
  learn(ways) {
    this.bound = new Set(ways.filter((one) => one.source_kind === "exchange" && one.destination_kind === "exchange").map((one) => one.destination));
  }

  match(way) {
    return matchOf(way, (name) => this.bound.has(name));
  }

  /** Return the rules on a way: those that match what it carries, and nothing else. */
  on(way) {
    const match = this.match(way);
    if (!match) return [];
    const actions = new Set(choicesOf(way).map(([, , rule]) => rule.action));
    return this.rules.filter(
      (rule) => actions.has(rule.action) && ["exchange", "queue", "routing_key", "method", "user", "connection", "client_property"].every((name) => (rule[name] ?? null) === (match[name] ?? null)),
    );
  }

  /** Return a few words about the rules on a way: "nacked 3". */
  mark(way) {
    return this.on(way).map((rule) => `${SHORT[rule.action]} ${number(rule.hits)}`).join(", ");
  }

  /** Return the cell of a way in the table. */
  cell(way) {
    const rules = this.on(way);
    return [
      rules.map((rule) => h("div", { class: "way-fault" }, h("span", null, `${SHORT[rule.action]} ${number(rule.hits)} `), h("button", { type: "button", class: "quiet small", "aria-label": `End fault ${rule.id}`, onclick: () => this.end(rule) }, "End"))),
      this.match(way) ? h("button", { type: "button", class: "quiet small", onclick: () => this.ask(way) }, "Add fault") : null,
    ];
  }

  async end(rule) {
    try {
      await remove(`/_broker/faults/${rule.id}`);
      toast(`Fault ${rule.id} was removed`);
    } catch (error) {
      toast(error.message, "error");
    }
    this.refresh();
  }

  /** Ask for a fault on a way, and add it. */
  ask(way, label = "") {
    const match = this.match(way);
    if (!match) return;
    const choices = choicesOf(way);
    dialog({
      title: `Fault${label ? ` on ${label}` : ""}`,
      action: "Add fault",
      note: "It strikes what takes this way, until it is spent or ended here or on the page Faults.",
      fields: [{ name: "fault", label: "Fault", type: "select", isWide: true, options: choices.map(([name, what]) => [name, what]) }],
      submit: async ({ fault }) => {
        const [, , rule] = choices.find(([name]) => name === fault);
        const { id } = await post("/_broker/faults", { ...rule, ...match, vhost: this.vhost });
        this.refresh();
        return id;
      },
      done: (values, id) => `Fault ${id} was added`,
    });
  }
}
