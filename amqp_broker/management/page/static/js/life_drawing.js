// The life of a message as a picture: a lane for each place, from left to right in the order of the events.

import { h, svg } from "./dom.js";
import { shortened } from "./names.js";
import { exchangeName } from "./format.js";

const SHOWN_MAX = 40;
const LANES_MAX = 16;
const LABELS = 210;
const STEP = 84;
const LANE = 34;
const TOP = 30;
const CHARACTERS = 30;

/** `events` as the API returns them; the lane of the queue with this name is marked. */
export function lifeDrawing(events, queue = null) {
  const shown = events.slice(0, SHOWN_MAX);
  const lanes = new Map();
  const lane = (kind, name) => {
    const key = `${kind} ${name}`;
    if (!lanes.has(key)) lanes.set(key, { kind, name, at: lanes.size });
    return lanes.get(key).at;
  };
  const steps = shown.map((event) => stepOf(event, lane));
  const kept = [...lanes.values()].slice(0, LANES_MAX);
  const width = LABELS + shown.length * STEP + 20;
  const height = TOP + kept.length * LANE + 24;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "life-drawing", role: "img", "aria-label": `The events of the message: ${shown.map(said).join(", ")}` });
  for (const one of kept) {
    const y = TOP + (one.at + 0.5) * LANE;
    const isMarked = one.kind === "queue" && one.name === queue;
    drawing.append(
      svg("line", { x1: LABELS - 8, x2: width, y1: y, y2: y, class: "lane" }),
      svg("g", { class: `lane-name ${one.kind} ${isMarked ? "marked" : ""}` }, svg("text", { x: 0, y: y + 4 }, shortened(labelOf(one), CHARACTERS), svg("title", null, labelOf(one)))),
    );
  }
  steps.forEach((step, index) => draw(drawing, step, shown[index], LABELS + (index + 0.5) * STEP, height));
  const rest = events.length - shown.length;
  const hidden = lanes.size - kept.length;
  return h(
    "div",
    null,
    h("div", { class: "life-frame", tabindex: "0", role: "group", "aria-label": "Picture of the life of the message" }, drawing),
    rest > 0 || hidden > 0 ? h("p", { class: "note" }, [rest > 0 ? `${rest} more events` : "", hidden > 0 ? `${hidden} more places` : ""].filter(Boolean).join(" and "), " are not drawn.") : null,
    h("ol", { class: "trail-list" }, events.map((event) => h("li", { class: event.event }, h("time", null, time(event.time_us)), h("b", { class: "kind" }, event.event.replace("_", " ")), ` ${detail(event)}`))),
  );
}

/** Return the lanes that an event leads from and to, and its mark. */
function stepOf(event, lane) {
  const client = () => lane("client", event.connection ?? "client");
  const exchange = () => lane("exchange", event.exchange);
  const here = () => lane("queue", event.queue);
  const targets = () => event.routed_queues.map((name) => lane("queue", name));
  if (event.event === "publish") {
    const from = client();
    const at = exchange();
    const mark = event.delayed_in ? [at, "⏲"] : event.routed_queues.length ? null : [at, "✗"];
    return { arrows: [[from, at], ...targets().map((to) => [at, to])], mark };
  }
  if (event.event === "tx_publish") return { arrows: [[client(), exchange()]], mark: [exchange(), "…"] };
  if (event.event === "rollback") return { arrows: [[exchange(), client()]], mark: [exchange(), "✗"], isAnswer: true };
  if (event.event === "route") {
    const at = exchange();
    return { arrows: targets().map((to) => [at, to]), mark: event.routed_queues.length ? null : [at, "✗"] };
  }
  if (event.event === "move") {
    const from = here();
    return { arrows: targets().map((to) => [from, to]), mark: null };
  }
  if (event.event === "requeue") return { arrows: [], mark: [here(), "↺"] };
  if (event.event === "delay") return { arrows: [], mark: [here(), "⏲"] };
  if (event.event === "drop" && event.queue === null) return { arrows: [], mark: [exchange(), "✗"] };
  if (event.event === "confirm" || event.event === "return") return { arrows: [[exchange(), client()]], mark: null, isAnswer: true };
  if (event.event === "deliver") return { arrows: [[here(), client()]], mark: null };
  if (event.event === "ack") return { arrows: [[client(), here()]], mark: [here(), "✓"] };
  if (event.event === "nack") return { arrows: [[client(), here()]], mark: [here(), event.requeue ? "↺" : "✗"] };
  if (event.event === "dead_letter") {
    const from = here();
    return { arrows: targets().map((to) => [from, to]), mark: event.routed_queues.length ? null : [from, "✗"], isLetter: true };
  }
  if (event.event === "fault") return { arrows: [], mark: [event.queue === null ? exchange() : here(), "⚡"] };
  return { arrows: [], mark: [here(), "✗"] };
}

function draw(drawing, { arrows, mark, isAnswer, isLetter }, event, x, height) {
  const place = (lane) => TOP + (lane + 0.5) * LANE;
  const group = svg("g", { class: `step ${event.event}` }, svg("title", null, said(event)));
  group.append(svg("text", { x, y: 14, "text-anchor": "middle", class: "event-name" }, event.event.replace("_", " ")));
  for (const [from, to] of arrows) {
    if (from >= LANES_MAX || to >= LANES_MAX) continue;
    const [y1, y2] = [place(from), place(to)];
    const bend = from === to ? 16 : 0;
    const way = y2 > y1 ? 1 : -1;
    group.append(
      svg("path", { d: bend ? `M${x} ${y1}c${bend} -14 ${bend} 14 0 0` : `M${x} ${y1}L${x} ${y2 - way * 5}`, class: `way ${isAnswer ? "answer" : ""} ${isLetter ? "letter" : ""}` }),
      svg("circle", { cx: x, cy: y1, r: 3 }),
    );
    if (!bend) group.append(svg("path", { d: `M${x - 4} ${y2 - way * 7}L${x} ${y2}L${x + 4} ${y2 - way * 7}`, class: "way" }));
  }
  if (mark && mark[0] < LANES_MAX) group.append(svg("text", { x: x + 9, y: place(mark[0]) - 4, class: "mark-of" }, mark[1]));
  group.append(svg("text", { x, y: height - 6, "text-anchor": "middle", class: "when" }, time(event.time_us)));
  drawing.append(group);
}

const labelOf = ({ kind, name }) => (kind === "exchange" ? `exchange ${exchangeName(name)}` : `${kind} ${name}`);

function said(event) {
  return `${event.event.replace("_", " ")} ${detail(event)}`;
}

function detail(event) {
  const queues = () => event.routed_queues.join(", ") || "no queue";
  if (event.event === "publish" || event.event === "route") {
    if (event.kept_from_delay) return `${exchangeName(event.exchange)}: fault ${event.discarded_by} kept it from a delay in ${event.kept_from_delay}`;
    if (event.kept_from?.length) return `${exchangeName(event.exchange)}: fault ${event.discarded_by} kept it from ${event.kept_from.join(", ")}`;
    const waits = event.delayed_in && !event.routed_queues.length;
    if (event.duplicate_in) return `${exchangeName(event.exchange)} → ${queues()}, a duplicate in ${event.duplicate_in.join(", ")}`;
    return `${exchangeName(event.exchange)} → ${waits ? `delayed in ${event.delayed_in.join(", ")}` : queues()}`;
  }
  if (event.event === "tx_publish") return `${exchangeName(event.exchange)}, not committed`;
  if (event.event === "rollback") return event.reason.replace("_", " ");
  if (event.event === "move") return `${event.queue} → ${queues()}`;
  if (event.event === "requeue") return `${event.queue} (${event.reason.replace("_", " ")})`;
  if (event.event === "dead_letter") return `${event.queue} (${event.reason}) → ${queues()}`;
  if (event.event === "confirm") return event.ack ? "ack" : "nack";
  if (event.event === "return") return `${event.reply_code} ${event.reply_text}`;
  if (event.event === "nack") return `${event.queue}, ${event.requeue ? "requeued" : "rejected"}`;
  if (event.event === "deliver") return `${event.queue} → ${event.connection ?? ""}`;
  if (event.event === "drop") return `${event.queue ?? exchangeName(event.exchange)} (${event.reason})`;
  if (event.event === "fault") return `${event.action}${event.queue === null ? "" : ` at ${event.queue}`}`;
  return event.queue ?? "";
}

function time(us) {
  const at = new Date(us / 1000);
  return `${at.toLocaleTimeString("en-GB")}.${String(Math.floor(us % 1e6)).padStart(6, "0").slice(0, 3)}`;
}
