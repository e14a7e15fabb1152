// The list of what is wrong now, for the start page, and the banner of alarms on all pages.

import { get, post, remove, set } from "./api.js";
import { h, put, show, text, toast } from "./dom.js";
import { confirm, dialog } from "./form.js";
import { counted, date, exchangePart, path, toExchange, toQueue } from "./format.js";
import { part } from "./list.js";
import { follow } from "./live.js";
import { state } from "./state.js";
import { queuesOf } from "./suggestions.js";

const WORDS = { critical: "Alarm", warning: "Warning", notice: "Note" };

// Places by what a finding has, the most telling first: name in the finding, label, address, and the tag that the page needs.
const LINKS = [
  ["fault", "Faults", () => "#/faults", "administrator"],
  ["shovel", "Shovels", () => "#/shovels"],
  ["exchange", "Exchange", (one) => toExchange(one.vhost, one.exchange)],
  ["queue", "Queue", (one) => toQueue(one.vhost, one.queue)],
  ["resource", "Queues", () => "#/queues"],
  ["host", "Connections", () => "#/connections"],
  ["kind", "Clock", () => "#/clock", "administrator"],
];

const isAdministrator = () => state.is("administrator");

/** The buttons by the kind of a finding: a function that returns label and action, or null if the user may not. */
const REMEDIES = {
  alarm: (one) => isAdministrator() && /by command$/.test(one.reason) && ["Clear alarm", () => quickly(() => remove(`/_broker/alarms/${one.resource}`), "The alarm was cleared")],
  "no-consumer": (one) => state.may("read", one.vhost, one.queue) && state.may("write", one.vhost, "") && ["Move messages", () => move(one)],
  "idle-consumer": (one) => isAdministrator() && ["Close connection", () => close(one)],
  "retry-loop": (one) => one.connection && isAdministrator() && ["Close connection", () => close(one)],
  unroutable: (one) => (one.exchange === "" ? state.may("configure", one.vhost, one.routing_key) && ["Declare queue", () => declare(one)] : state.may("read", one.vhost, one.exchange) && ["Bind queue", () => bind(one)]),
  shovel: (one) => one.vhost !== undefined && state.is("policymaker") && ["Restart", () => quickly(() => remove(`/api/shovels/vhost/${path(one.vhost, one.shovel)}/restart`), `${one.shovel} was restarted`)],
  "fault-rule": (one) => isAdministrator() && ["Remove rule", () => quickly(() => remove(`/_broker/faults/${one.fault}`), `Fault rule ${one.fault} was removed`)],
  clock: (one) => one.is_frozen && isAdministrator() && ["Let it run", () => quickly(() => post("/_broker/clock/resume"), "The clock runs again")],
};

async function quickly(act, done) {
  try {
    await act();
    toast(done);
    dispatchEvent(new Event("attentionchange"));
  } catch (error) {
    toast(error.message, "error");
  }
}

/** Open a dialog; the list is asked for anew once it has acted. */
const acting = ({ submit, ...rest }) => ({
  ...rest,
  submit: async (values) => {
    await submit(values);
    dispatchEvent(new Event("attentionchange"));
  },
});

function move({ vhost, queue }) {
  dialog(
    acting({
      title: `Move the messages of ${queue}`,
      note: "All ready messages go to the end of the other queue, in their order.",
      fields: [{ name: "destination", label: "To queue", required: true, suggest: queuesOf(vhost) }],
      action: "Move messages",
      submit: async ({ destination }) => {
        const { moved, reason } = await post(`/_broker/queues/${path(vhost, queue)}/move`, { destination: { queue: destination } });
        if (reason) throw new Error(`${counted(moved, "message")} moved, then: ${reason}`);
      },
      done: ({ destination }) => `The messages of ${queue} were moved to ${destination}`,
    }),
  );
}

function close({ connection, queue }) {
  confirm(
    acting({
      title: "Close the connection?",
      note: `${connection}: the messages of ${queue} that it has not settled return to the queue. Its client may connect again.`,
      action: "Close connection",
      submit: () => remove(`/api/connections/${path(connection)}`),
      done: "The connection was closed",
    }),
  );
}

function declare({ vhost, routing_key: name }) {
  dialog(
    acting({
      title: `Declare the queue ${name}?`,
      note: "It is durable, and a classic queue unless the virtual host has another default.",
      fields: [],
      action: "Declare queue",
      submit: () => set(`/api/queues/${path(vhost, name)}`, { durable: true }),
      done: `${name} was declared`,
    }),
  );
}

function bind({ vhost, exchange, routing_key: key }) {
  dialog(
    acting({
      title: `Bind a queue to ${exchange}`,
      fields: [
        { name: "queue", label: "Queue", required: true, suggest: queuesOf(vhost) },
        { name: "key", label: "Routing key", value: key ?? "", help: key === undefined ? "For all messages of a topic exchange: #" : null },
      ],
      action: "Bind queue",
      submit: (given) => post(`/api/bindings/${path(vhost)}/e/${path(exchangePart(exchange))}/q/${path(given.queue)}`, { routing_key: given.key }),
      done: (given) => `${given.queue} was bound`,
    }),
  );
}

/** Return the part of the start page that lists what needs attention. */
export function attentionPart() {
  const list = h("ul", { hidden: true });
  const nothing = h("p", { class: "quiet", hidden: true }, "Nothing needs attention.");
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  // Entries by what they are about: the focus stays on a button whose sentence changes each second.
  const entries = new Map();

  function update(found) {
    const rows = new Map(found.map((one) => [keyOf(one), one]));
    for (const [key, entry] of entries) {
      if (rows.has(key)) continue;
      entry.element.remove();
      entries.delete(key);
    }
    let place = list.firstChild;
    for (const [key, one] of rows) {
      if (!entries.has(key)) entries.set(key, new Entry(one));
      const entry = entries.get(key);
      entry.update(one);
      if (entry.element === place) place = place.nextSibling;
      else list.insertBefore(entry.element, place);
    }
    list.hidden = rows.size === 0;
    nothing.hidden = rows.size > 0;
  }

  const following = follow(["queue", "connection", "channel", "exchange", "binding", "alarm", "vhost"], async () => {
    const query = state.vhost ? `?${new URLSearchParams({ vhost: state.vhost })}` : "";
    try {
      update(await get(`/_broker/attention${query}`));
      problem.hidden = true;
    } catch (error) {
      problem.hidden = false;
      put(problem, error.message);
    }
  });
  addEventListener("attentionchange", following.run);
  return {
    element: part("Attention", [problem, h("div", { class: "attention" }, list, nothing)]),
    refresh: following.run,
    leave: () => {
      removeEventListener("attentionchange", following.run);
      following.leave();
    },
  };
}

const keyOf = ({ sentence: _, remedy: __, since_ms: ___, ...place }) => JSON.stringify(place);

class Entry {
  constructor(one) {
    const [, label, address, needs] = LINKS.find(([name]) => name in one);
    const remedy = REMEDIES[one.kind]?.(one);
    this.sentence = h("p");
    this.more = h("p", { class: "muted" });
    this.element = h(
      "li",
      { class: one.level },
      h("b", { class: "level" }, WORDS[one.level]),
      h("div", null, this.sentence, this.more),
      h(
        "div",
        { class: "actions" },
        one.connection && h("a", { href: `#/connections/${path(one.connection)}` }, "Connection"),
        one.dead_letter_queue !== undefined && h("a", { href: toQueue(one.vhost, one.dead_letter_queue) }, "Dead letters"),
        (!needs || state.is(needs)) && h("a", { href: address(one) }, label),
        remedy && h("button", { type: "button", class: "small", "aria-haspopup": "dialog", onclick: remedy[1] }, remedy[0]),
      ),
    );
  }

  update(one) {
    text(this.sentence, one.sentence);
    const place = one.vhost !== undefined && state.vhosts.length > 1 ? ` Virtual host ${one.vhost}.` : "";
    text(this.more, `${one.remedy}${place}${one.since_ms ? ` Since ${date(one.since_ms)}.` : ""}`);
  }
}

/** Return the banner that names the alarms; `update(alarms)` shows those of a live update. */
export function alarmBanner() {
  const element = h("div", { role: "alert", class: "alarms" });
  return {
    element,
    update: (alarms = []) => show(element, alarms, () => alarms.map((one) => h("p", null, one.sentence, " ", h("span", { class: "muted" }, `Since ${date(one.since_ms)}.`)))),
  };
}
