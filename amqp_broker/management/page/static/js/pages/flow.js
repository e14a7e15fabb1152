// Live messages: the trace of the selected virtual host, or of all.

import { get } from "../api.js";
import { h, put, text } from "../dom.js";
import { number, octets, toExchange, toQueue, exchangeName } from "../format.js";
import { listen, live } from "../live.js";
import { payloadView, preview, propertiesView } from "../payload.js";
import { pytestButton } from "../pytest_copy.js";
import { state } from "../state.js";

const KEPT_MAX = 2000;
const SHOWN_MAX = 150;
const PAINT_MS = 150;
const EVENTS = {
  publish: "published to an exchange",
  tx_publish: "published in a transaction",
  rollback: "forgotten by its transaction",
  route: "sent by an exchange that kept it",
  refuse: "refused by a full queue",
  deliver: "sent to a consumer",
  ack: "settled",
  nack: "requeued or rejected",
  requeue: "ready again",
  delay: "delayed by its queue",
  move: "moved to another queue",
  confirm: "confirmed to its publisher",
  return: "not routed to a queue",
  expire: "expired in its queue",
  drop: "dropped by its queue",
  dead_letter: "republished as a dead letter",
  fault: "hit by a fault rule",
};
// The columns of a row, by the classes of their cells.
const COLUMNS = { time: "Time", kind: "Event", number: "Message", place: "Exchange or queue", routing: "Routing key", says: "Payload or reason", size: "Size" };
const AT_EXCHANGES = new Set(["publish", "tx_publish", "rollback", "route", "confirm", "return"]);
const isAtExchange = (one) => AT_EXCHANGES.has(one.event) || (one.event === "fault" && one.message_number > 0 && one.queue === undefined);

export function page() {
  const vhost = state.vhost;
  const place = vhost === "" ? "all virtual hosts" : vhost;
  const kept = [];
  const hidden = new Set(JSON.parse(sessionStorage.getItem("flow") ?? "[]"));
  let wanted = "";
  let chosen = null;
  let isPaused = false;
  let skipped = 0;
  let total = 0;
  let painting = null;

  const rows = h("ol", { class: "flow", "aria-label": "Messages" });
  const inspector = h("aside", { class: "inspector", hidden: true });
  const condition = h("span", { class: "muted" }, "Connecting");
  const search = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter messages", spellcheck: "false", oninput: () => ((wanted = search.value.toLowerCase()), paint()) });
  const hold = h("button", { type: "button", "aria-pressed": "false", onclick: () => live.pause(!live.isPaused) }, "Pause");
  const switches = Object.entries(EVENTS).map(([event, help]) =>
    h("label", { class: `switch ${event}`, title: help }, h("input", { type: "checkbox", checked: !hidden.has(event), onchange: (change) => toggle(event, change.target.checked) }), event.replace("_", " ")),
  );
  const empty = h("div", { class: "empty" }, h("b", null, "No events yet."), h("p", null, "Publishes, deliveries, acks and other events of messages in ", vhost === "" ? place : h("code", null, vhost), " appear here at once."));

  function toggle(event, isShown) {
    if (isShown) hidden.delete(event);
    else hidden.add(event);
    sessionStorage.setItem("flow", JSON.stringify([...hidden]));
    paint();
  }

  /** Pause with the whole page, whose button and key do the same. */
  function setPaused(paused) {
    isPaused = paused;
    hold.setAttribute("aria-pressed", String(paused));
    text(hold, paused ? "Resume" : "Pause");
    paint();
  }

  function matches(one) {
    if (hidden.has(one.event)) return false;
    if (!wanted) return true;
    one.words ??= [one.name, one.vhost, one.exchange_name, ...(one.routing_keys ?? []), one.payload ?? "", one.user ?? "", one.message_number, JSON.stringify(one.properties ?? "")].join("\n").toLowerCase();
    return one.words.includes(wanted);
  }

  function add({ events, skipped: lost }) {
    if (isPaused) return;
    skipped += lost;
    total += events.length + lost;
    kept.push(...events);
    if (kept.length > KEPT_MAX) kept.splice(0, kept.length - KEPT_MAX);
    painting ??= setTimeout(paint, PAINT_MS);
  }

  function paint() {
    clearTimeout(painting);
    painting = null;
    const shown = [];
    for (let at = kept.length - 1; at >= 0 && shown.length < SHOWN_MAX; at -= 1) if (matches(kept[at])) shown.push(kept[at]);
    // Keep existing rows, so that one with the focus keeps it.
    const wantedRows = new Set(shown);
    for (const row of [...rows.children]) if (!wantedRows.has(row.shows)) row.remove();
    let before = null;
    for (const one of shown) {
      one.row ??= rowOf(one);
      const next = before ? before.nextSibling : rows.firstChild;
      if (next !== one.row) rows.insertBefore(one.row, next);
      before = one.row;
    }
    empty.hidden = shown.length > 0;
    text(empty.firstChild, kept.length ? "No event matches the filter." : "No events yet.");
    text(condition, [`${number(total)} events`, skipped ? `${number(skipped)} skipped` : "", isPaused ? "paused" : ""].filter(Boolean).join(" · "));
  }

  function rowOf(one) {
    const at = isAtExchange(one) ? exchangeName(one.name) : one.name;
    const row = h(
      "li",
      null,
      h(
        "button",
        { type: "button", class: `event ${one.event}`, onclick: () => inspect(one) },
        h("time", null, time(one.time_us)),
        h("span", { class: "kind" }, one.event.replace("_", " ")),
        h("span", { class: "number" }, one.message_number ? `#${one.message_number}` : ""),
        h("span", { class: "place" }, vhost === "" ? h("i", { class: "of" }, one.vhost) : null, at),
        h("span", { class: "routing" }, (one.routing_keys ?? []).join(", ")),
        h("span", { class: "says" }, says(one)),
        h("span", { class: "size" }, one.payload_bytes === undefined ? "" : octets(one.payload_bytes)),
      ),
    );
    row.shows = one;
    return row;
  }

  function inspect(one) {
    chosen?.row?.firstChild.removeAttribute("aria-current");
    chosen = one;
    one.row?.firstChild.setAttribute("aria-current", "true");
    inspector.hidden = false;
    const isExchange = isAtExchange(one);
    const isPlace = one.event !== "fault" || one.queue !== undefined || one.message_number > 0;
    const facts = [
      ["Time", `${time(one.time_us)}`],
      ["Virtual host", one.vhost],
      isPlace && [isExchange ? "Exchange" : "Queue", h("a", { href: isExchange ? toExchange(one.vhost, one.name) : toQueue(one.vhost, one.name) }, isExchange ? exchangeName(one.name) : one.name)],
      ["Published to", exchangeName(one.exchange_name)],
      ["Routing keys", (one.routing_keys ?? []).join(", ") || "(empty)"],
      ["Routed to", one.routed_queues ? one.routed_queues.join(", ") || "no queue" : null],
      ["Kept from", one.kept_from?.length ? `${one.kept_from.join(", ")} by fault ${one.discarded_by}` : null],
      ["Connection", one.connection],
      ["Channel", one.channel],
      ["User", one.user],
      ["Redelivered", one.redelivered],
      ["Reason", one.reason ?? one.reply_text],
      ["Requeue", one.requeue],
      ["Fault", one.action],
      ["On", one.on],
      ["Rule", one.rule_id],
      ["Parameters", Object.entries(one.parameters ?? {}).map(([name, value]) => `${name} ${value}`).join(", ")],
    ].filter(Boolean).filter(([, value]) => value !== undefined && value !== null && value !== "");
    put(
      inspector,
      h(
        "div",
        { class: "inspector-head" },
        h("h2", null, one.event.replace("_", " "), one.message_number ? ` #${one.message_number}` : ""),
        one.message_number ? h("button", { type: "button", class: "small", onclick: () => trail(one.message_number) }, "Show all its events") : null,
        one.message_number ? pytestButton(() => `/_broker/messages/${one.message_number}/pytest`) : null,
        h("button", { type: "button", class: "quiet square", "aria-label": "Close", onclick: () => (inspector.hidden = true) }, "×"),
      ),
      h("dl", { class: "pairs-view" }, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value instanceof Node ? value : String(value))))),
      one.payload === undefined ? null : payloadView(one),
      one.payload === undefined ? null : one.properties === null ? h("p", { class: "note" }, "The properties are too large to show.") : propertiesView(one.properties),
    );
  }

  /** Show all events of one message. */
  async function trail(number_) {
    const shown = chosen;
    const way = (await logged(number_)) ?? kept.filter((one) => one.message_number === number_ || one.from_message_number === number_);
    if (chosen !== shown) return;
    inspector.append(h("h3", { class: "minor-title" }, "Its events"), h("ol", { class: "trail-list" }, way.map((one) => h("li", { class: one.event }, h("time", null, time(one.time_us)), h("b", { class: "kind" }, one.event.replace("_", " ")), ` ${one.name ?? one.queue ?? exchangeName(one.exchange)}`))));
  }

  const close = listen(
    vhost === "" ? "streams=messages" : `streams=messages&vhost=${encodeURIComponent(vhost)}`,
    (event, value) => event === "messages" && add(value),
    (isOpen, reason) => (isOpen && isPaused ? paint() : text(condition, isOpen ? "Listening" : reason || "Reconnecting")),
  );
  const leave = live.on((event) => event === "state" && live.isPaused !== isPaused && setPaused(live.isPaused));
  if (live.isPaused) setPaused(true);
  const heads = Object.entries(COLUMNS).map(([name, label]) => h("span", { class: name }, label));
  const element = h(
    "section",
    { class: "flow-page" },
    h("div", { class: "title" }, h("h1", null, "Live Messages"), h("code", { class: "tag" }, place), condition, h("div", { class: "actions" }, search, hold, h("button", { type: "button", onclick: clear }, "Clear"))),
    h("div", { class: "switches", role: "group", "aria-label": "Events shown" }, switches),
    h("div", { class: "flow-body" }, h("div", { class: "flow-list" }, h("div", { class: "event heads" }, heads), empty, rows), inspector),
  );

  function clear() {
    kept.length = 0;
    total = skipped = 0;
    inspector.hidden = true;
    paint();
  }

  return { title: "Live Messages", element, leave: () => (close(), leave(), clearTimeout(painting)) };
}

/** Return the events of a message in the event log, which may know more than this page; null if it has none. */
async function logged(number_) {
  try {
    return (await get(`/_broker/messages/${number_}`)).events;
  } catch {
    return null;
  }
}

function time(us) {
  const at = new Date(us / 1000);
  return `${at.toLocaleTimeString("en-GB")}.${String(Math.floor(us % 1e6)).padStart(6, "0")}`;
}

function says(one) {
  if (one.payload !== undefined) return preview(one);
  if (one.event === "nack") return one.requeue ? "requeued" : "rejected";
  if (one.event === "confirm") return one.ack ? "ack" : "nack";
  if (one.event === "return") return `${one.reply_code} ${one.reply_text}`;
  if (one.event === "route" || one.event === "move") return `→ ${(one.routed_queues ?? []).join(", ") || "no queue"}`;
  if (one.event === "dead_letter") return `${one.reason} → ${(one.routed_queues ?? []).join(", ") || "no queue"}`;
  if (one.event === "fault") return one.action;
  return one.reason ?? "";
}
