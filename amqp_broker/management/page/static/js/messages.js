// Messages of a queue: peek, get, publish, move.

import { post } from "./api.js";
import { h, put, toast } from "./dom.js";
import { form } from "./form.js";
import { number, path } from "./format.js";
import { part } from "./list.js";
import { messageList } from "./message_list.js";
import { peekView } from "./peek.js";
import { publishForm } from "./publishing.js";
import { state } from "./state.js";
import { queuesOf } from "./suggestions.js";

const TRUNCATE = 50000;

/** Return the messages part of a queue's page, with a tab for all that the user may do. */
export function messagesPart(vhost, name, changed) {
  const address = path(vhost, name);
  const mayRead = state.may("read", vhost, name);
  const mayWrite = state.may("write", vhost, "");
  if (!mayRead && !mayWrite) {
    const sentence = `Your user has no permission to read the messages of ${name}, or to publish to it.`;
    return { element: part("Messages", h("p", { class: "note" }, sentence)), refresh: () => {}, setType: () => {} };
  }
  const peek = peekView(address, vhost, name, changed);
  const refresh = () => mayRead && peek.load();
  const move = h("div", { class: "stack" }, moveForm(address, vhost, changed), returnForm(address, changed));
  const views = [
    mayRead && ["Peek", peek.element, refresh],
    mayRead && ["Get", getView(address, changed), null],
    mayWrite && ["Publish", publishForm({ vhost, exchange: "", queue: name, done: () => (changed(), refresh()) }), null],
    mayRead && mayWrite && ["Move", move, null],
  ].filter(Boolean);
  const tabs = views.map(([label], index) =>
    h("button", { type: "button", role: "tab", "aria-selected": "false", tabindex: -1, id: `tab-${label.toLowerCase()}`, "aria-controls": `panel-${label.toLowerCase()}`, onclick: () => choose(index) }, label),
  );
  const panels = views.map(([label, view]) => h("div", { role: "tabpanel", id: `panel-${label.toLowerCase()}`, "aria-labelledby": `tab-${label.toLowerCase()}`, hidden: true }, view));

  function choose(index, isFocused = false) {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === index));
      tab.tabIndex = at === index ? 0 : -1;
      panels[at].hidden = at !== index;
    });
    if (isFocused) tabs[index].focus();
    views[index][2]?.();
  }

  const list = h(
    "div",
    {
      role: "tablist",
      "aria-label": "Messages",
      class: "tabs",
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) choose((tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length, true);
      },
    },
    tabs,
  );
  choose(0);
  return {
    element: h("section", { class: "part" }, h("div", { class: "part-head" }, h("h2", null, "Messages"), list), panels),
    refresh,
    // Streams have no get and no move.
    setType: (type) => {
      views.forEach(([label], index) => (tabs[index].hidden = type === "stream" && (label === "Get" || label === "Move")));
      peek.setType(type);
    },
  };
}

function getView(address, changed) {
  const found = h("div");
  return h(
    "div",
    null,
    form({
      action: "Get messages",
      note: "Gets messages from the queue. Requeued messages are marked as redelivered.",
      fields: [
        {
          name: "ackmode",
          label: "Ack mode",
          type: "select",
          options: [
            ["ack_requeue_true", "Nack message, requeue true"],
            ["ack_requeue_false", "Automatic ack"],
            ["reject_requeue_true", "Reject, requeue true"],
            ["reject_requeue_false", "Reject, requeue false"],
          ],
        },
        { name: "encoding", label: "Encoding", type: "select", options: [["auto", "Text, else base64"], ["base64", "Base64"]] },
        { name: "count", label: "Messages", type: "number", value: "1", min: 1, required: true },
      ],
      submit: async (values) => {
        const messages = await post(`/api/queues/${address}/get`, { ...values, truncate: TRUNCATE });
        put(found, messages.length ? messageList(messages) : h("div", { class: "empty" }, h("b", null, "The queue is empty.")));
        changed();
      },
    }),
    found,
  );
}

function moveForm(address, vhost, changed) {
  return form({
    action: "Move messages",
    note: "A message is removed from this queue after the other queue has it. Routing keys, headers and order are kept.",
    fields: [{ name: "destination", label: "To queue", required: true, suggest: queuesOf(vhost) }, { name: "count", label: "Maximum", type: "number", min: 1, placeholder: "all" }],
    submit: async ({ destination, count }) => {
      const answer = await post(`/_broker/queues/${address}/move`, { destination: { queue: destination }, ...(count ? { count } : {}) });
      if (answer.reason) throw new Error(`${number(answer.moved)} messages moved, then: ${answer.reason}`);
      toast(`${number(answer.moved)} messages moved to ${destination}`);
      changed();
    },
  });
}

/** Return the form that moves dead letters back to the queues that gave them up. */
function returnForm(address, changed) {
  return form({
    action: "Return dead letters",
    note: "Each message goes to the end of the queue that gave it up last, which its header x-death names.",
    fields: [{ name: "count", label: "Maximum", type: "number", min: 1, placeholder: "all" }],
    submit: async ({ count }) => {
      const answer = await post(`/_broker/queues/${address}/return`, count ? { count } : {});
      if (answer.moved) changed();
      if (answer.reason) throw new Error(`${number(answer.moved)} messages returned, then: ${answer.reason}`);
      toast(`${number(answer.moved)} messages returned`);
    },
  });
}
