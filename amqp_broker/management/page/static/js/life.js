// "Why is this message (not) here?": the lives of messages from the view of a queue, from the event log.

import { get, set } from "./api.js";
import { h, put, show, text, toast } from "./dom.js";
import { counted, date, exchangeName, number, path } from "./format.js";
import { lifeDrawing } from "./life_drawing.js";
import { part } from "./list.js";
import { preview } from "./payload.js";
import { pytestButton } from "./pytest_copy.js";
import { searchField } from "./search.js";
import { state } from "./state.js";
import { tag } from "./table.js";

const STATES = { ready: ["here, ready", "good"], unacked: ["here, unacked", "good"], delayed: ["here, delayed", ""], gone: ["gone", ""], elsewhere: ["not here", "bad"] };

/** Return the part of a queue's page; null for users who must not read the event log. */
export function lifePart(vhost, name) {
  if (!state.is("administrator")) return null;
  const queue = `/_broker/queues/${path(vhost, name)}`;
  const searched = () => new URLSearchParams({ search: search.value });
  const search = searchField({ placeholder: "Message id, number, key or text", "aria-label": "Search the messages of the virtual host", apply: load });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const status = h("p", { class: "note", role: "status" });
  const found = h("div", { class: "lives" });
  let latest = 0;

  async function load() {
    const mine = ++latest;
    text(status, "Searching…");
    try {
      const answer = await get(`${queue}/lives?${searched()}`);
      if (mine !== latest) return;
      copy.hidden = !answer.messages.length;
      problem.hidden = true;
      text(status, answer.has_log ? reachOf(answer) : "");
      show(found, answer, () => (answer.has_log ? listOf(answer) : starter()));
    } catch (error) {
      if (mine !== latest) return;
      problem.hidden = false;
      text(problem, error.message);
      text(status, "");
    }
  }

  /** Return how far back the event log reaches. */
  function reachOf({ skipped, since_ms: since, published_before: before }) {
    const earlier = before ? ` It began after ${counted(before, "message")} of this virtual host.` : "";
    if (since === null) return `The event log has no events yet.${earlier}`;
    return `The event log reaches back to ${date(since)}${skipped ? `; ${counted(skipped, "older event")} are no longer known` : ""}.${earlier}`;
  }

  function listOf({ messages }) {
    if (!messages.length) return h("div", { class: "empty" }, h("b", null, search.value ? "No message in the event log matches." : "No message has come here since the event log was started."));
    return messages.map((one) => lifeOf(one, name));
  }

  function starter() {
    const start = h("button", { type: "button", onclick: () => begin(start) }, "Start the event log");
    return h("div", { class: "empty" }, h("b", null, "The virtual host has no event log."), h("p", null, "It keeps the newest events of its messages, from its start on."), start);
  }

  async function begin(button) {
    button.disabled = true;
    try {
      await set(`/_broker/event-log/${path(vhost)}`);
      await load();
      search.focus();
    } catch (error) {
      button.disabled = false;
      toast(error.message, "error");
    }
  }

  const copy = pytestButton(() => `${queue}/pytest?${searched()}`);
  copy.hidden = true;
  const bar = h("div", { class: "bar" }, search, h("button", { type: "button", onclick: load }, "Refresh"), copy);
  return { element: part("Why is this message (not) here?", bar, problem, status, found), load };
}

/** One message: a line, and folded below it why it is here or not, its way as a picture, and its events. */
function lifeOf(one, queue) {
  const inner = h("div", { class: "life" });
  const unfold = () => {
    if (inner.firstChild) return;
    put(
      inner,
      h("p", { class: "why" }, one.sentences.join(" ")),
      lifeDrawing(one.events, queue),
      one.events_skipped ? h("p", { class: "note" }, `The picture shows the first events; ${number(one.events_skipped)} more are in the event log.`) : null,
      pytestButton(() => `/_broker/messages/${one.message_number}/pytest`),
    );
  };
  const id = one.properties?.message_id;
  return h(
    "details",
    { ontoggle: unfold },
    h(
      "summary",
      null,
      h("span", { class: "number" }, `#${one.message_number}`),
      tag(...STATES[one.state]),
      h("span", { class: "place" }, id ? `${id} · ` : "", `${exchangeName(one.exchange)} · ${one.routing_keys.join(", ") || "(empty key)"}`),
      h("span", { class: "says" }, preview(one)),
    ),
    inner,
  );
}
