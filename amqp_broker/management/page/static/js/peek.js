// Messages of a queue, shown without being consumed. Chosen ones are returned, moved or downloaded.

import { ask, get, post } from "./api.js";
import { h, put, text, toast } from "./dom.js";
import { confirm, dialog } from "./form.js";
import { counted, number } from "./format.js";
import { messageList } from "./message_list.js";
import { editAndPublish } from "./publishing.js";
import { searchField } from "./search.js";
import { state as rights } from "./state.js";
import { queuesOf } from "./suggestions.js";

const PEEKED = 50;
const TRUNCATE = 50000;
const STATES = [
  ["ready", "Ready"],
  ["unacked", "Unacked"],
  ["delayed", "Delayed"],
];

const isDead = (one) => Array.isArray(one.properties?.headers?.["x-death"]);

export function peekView(address, vhost, name, changed) {
  // Offsets of the previous pages.
  let before = [];
  let offset = 0;
  let next = null;
  let latest = 0;
  let isStream = false;
  let hasDead = false;
  // Messages are returned and moved through the default exchange.
  const mayWrite = rights.may("write", vhost, "");
  // The positions of chosen messages.
  const chosen = new Set();
  const found = h("div");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const range = h("span", { class: "muted" });
  const search = searchField({ name: "search", placeholder: "Search keys, headers, payloads", "aria-label": "Search messages", apply: () => start() });
  const state = h("select", { "aria-label": "State of the messages", onchange: () => start() }, STATES.map(([value, label]) => h("option", { value }, label)));
  const back = h("button", { type: "button", onclick: () => go(before.pop(), before) }, "Previous");
  const forward = h("button", { type: "button", onclick: () => go(next, [...before, offset]) }, "Next");
  const button = (label, onclick) => h("button", { type: "button", onclick }, label);
  const which = h("b", { role: "status" });
  const reported = (work) => () => work().catch((error) => toast(error.message, "error"));
  const clear = button("Clear choice", () => (chosen.clear(), load()));
  const returning = button("Return", reported(() => act("return", [...chosen], {}, "returned")));
  const moving = button("Move", () => move([...chosen]));
  const returnAll = button("Return all", () => returnEach());
  // Buttons that change the queue are far from those that do not.
  const way = h("span", { class: "push" }, returning, moving, returnAll);
  const actions = h("div", { class: "bar chosen", hidden: true }, which, clear, button("Download JSON", reported(() => download("json"))), button("Download capture", reported(() => download("capture"))), way);

  function go(to, past) {
    offset = to;
    before = past;
    return load();
  }

  function start() {
    chosen.clear();
    return go(0, []);
  }

  async function load() {
    const mine = ++latest;
    const query = new URLSearchParams({ count: PEEKED, offset, truncate: TRUNCATE, state: state.value });
    if (search.value) query.set("search", search.value);
    try {
      const answer = await get(`/_broker/queues/${address}/peek?${query}`);
      if (mine !== latest) return;
      const { messages } = answer;
      const isReady = state.value === "ready";
      next = answer.next;
      problem.hidden = true;
      const edit = mayWrite ? (one) => editAndPublish(vhost, one, changed) : null;
      put(found, messages.length ? messageList(messages, { address, state: state.value, chosen: isReady ? chosen : null, onChosen: drawActions, edit }) : h("div", { class: "empty" }, nothing()));
      actions.hidden = !isReady || !messages.length;
      // A search shows some of them only.
      hasDead = !search.value && messages.some(isDead);
      drawActions();
      text(range, messages.length ? `${number(messages[0].offset)} – ${number(messages[messages.length - 1].offset)}` : "");
      back.hidden = before.length === 0;
      forward.hidden = next === null;
    } catch (error) {
      problem.hidden = false;
      text(problem, error.message);
    }
  }

  function nothing() {
    if (search.value) return h("b", null, next === null ? "No message matches." : "No message in this part matches; continue with Next.");
    return [h("b", null, `No messages are ${state.value}.`), h("p", null, "New messages appear here after a refresh.")];
  }

  function drawActions() {
    text(which, chosen.size ? `${counted(chosen.size, "message")} chosen` : "All ready messages");
    // All of them are moved by the form of the tab Move.
    clear.hidden = returning.hidden = moving.hidden = !chosen.size;
    returnAll.hidden = chosen.size > 0 || !hasDead;
    way.hidden = isStream || !mayWrite;
  }

  /** Return all dead letters, once the user has confirmed it. */
  function returnEach() {
    confirm({
      title: `Return all dead letters of ${name}?`,
      note: "Each message goes to the end of the queue that gave it up last. Its consumers get it again at once.",
      action: "Return all messages",
      submit: () => act("return", null, {}, "returned"),
    });
  }

  /** Act on the messages at these positions, or on all (null). Throw Error with the reason if some are left. */
  async function act(action, positions, more, done) {
    const { moved, reason } = await post(`/_broker/queues/${address}/${action}`, positions ? { positions, ...more } : more);
    chosen.clear();
    await load();
    changed();
    if (reason) throw new Error(`${counted(moved, "message")} ${done}, then: ${reason}`);
    toast(`${counted(moved, "message")} ${done}`);
  }

  function move(positions) {
    dialog({
      title: `Move ${counted(positions.length, "message")} of ${name}`,
      action: "Move messages",
      note: "They go to the end of the other queue, in their order.",
      fields: [{ name: "destination", label: "To queue", required: true, suggest: queuesOf(vhost) }],
      submit: ({ destination }) => act("move", positions, { destination: { queue: destination } }, `moved to ${destination}`),
    });
  }

  async function download(format) {
    const query = new URLSearchParams({ format, positions: [...chosen].join(",") });
    const response = await ask(`/_broker/queues/${address}/download?${query}`);
    if (!response.ok) throw new Error((await response.json()).reason);
    const href = URL.createObjectURL(await response.blob());
    h("a", { href, download: `${name}.${format === "json" ? "json" : "jsonl"}` }).click();
    URL.revokeObjectURL(href);
  }

  const bar = h("div", { class: "bar" }, search, state, button("Refresh", () => load()), h("span", { class: "muted" }, "Peeking does not consume messages."), h("span", { class: "push" }, range, back, forward));
  const setType = (type) => {
    isStream = type === "stream";
  };
  return { element: h("div", null, bar, actions, problem, found), load, setType };
}
