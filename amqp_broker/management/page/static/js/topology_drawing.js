// The map of a virtual host: exchanges in columns, queues at the right, and the ways of messages between them.

import { h, svg, text } from "./dom.js";
import { exchangeName, number, rate, toExchange, toQueue } from "./format.js";
import { inLines } from "./names.js";

const BOX = { width: 250, height: 48 };
const ROW = 58;
const LINE = 13;
const STEP_MAX = 3 * ROW;
const GAP = 120;
const MARGIN = 46;
const CHARACTERS = 34;
// More queues than a screen has: busy ones come first.
const SCREENFUL = 12;
// Columns of exchanges: those that are bound to others are left of these.
const DEPTH_MAX = 3;
// Messages per second from which a way is drawn thicker.
const LEVELS = [0, 10, 100, 1000];

/** Return the class of a way with this many messages per second. */
const glow = (perSecond) => (perSecond > 0 ? `lit lit-${LEVELS.filter((one) => perSecond >= one).length}` : "");

export class TopologyDrawing {
  /**
   * `unfold` is called with the name of an exchange whose other queues are to be shown. `press` returns a function that
   * follows a press on a way; null if nothing follows.
   */
  constructor({ unfold, press }) {
    this.unfold = unfold;
    this.press = press;
    this.frame = h("div", { class: "drawing map-frame", tabindex: "0", role: "group", "aria-label": "Map as a picture" });
    this.shape = "";
  }

  /**
   * Draw anew what has been created or deleted; otherwise change numbers and light alone. The lists are always in the
   * same order; `rates` are per second, and undefined if they are not known yet. `mark` returns a text that stands on a
   * way, or "".
   */
  update({ exchanges, queues, folds, ways }, vhost, rates, mark) {
    const shape = JSON.stringify([vhost, exchanges.map((one) => [one.name, one.type]), queues.map((one) => [one.name, one.type, queues.length > SCREENFUL && one.level]), folds.map((one) => one.sources), ways.map(({ messages, ...way }) => way)]);
    if (shape !== this.shape) this.build(exchanges, queues, folds, ways, vhost);
    this.shape = shape;
    const arrived = new Map();
    for (const one of ways) {
      const perSecond = rates.way(one);
      this.light(wayKey(one), perSecond);
      if (one.destination_kind === "exchange") arrived.set(one.destination, (arrived.get(one.destination) ?? 0) + perSecond);
    }
    for (const one of exchanges) this.exchange(one, rates.exchange(one), arrived.get(one.name) ?? 0);
    for (const one of queues) this.queue("queue", one, rates.queue(one));
    for (const one of folds) {
      const node = this.nodes.get(`fold ${one.name}`);
      text(node.label, foldName(one));
      text(node.title, foldTitle(one));
      this.lines.get(`out fold ${one.name}`).label = `Delivered from ${foldName(one)}`;
      this.queue("fold", one, rates.fold(one));
    }
    this.markAll(mark);
  }

  exchange(one, published, arrived) {
    text(this.nodes.get(`exchange ${one.name}`).detail, `${one.type} · ${rate(published + arrived)} in`);
    this.light(`in ${one.name}`, published, one.messages > 0);
  }

  queue(kind, one, delivered) {
    const consumers = one.consumers ? ` · ${number(one.consumers)} ${one.consumers === 1 ? "consumer" : "consumers"}` : "";
    text(this.nodes.get(`${kind} ${one.name}`).detail, `${number(one.ready)} ready${consumers}`);
    this.light(`out ${kind} ${one.name}`, delivered, one.consumers > 0 || delivered > 0);
  }

  light(key, perSecond, isThere = true) {
    const line = this.lines.get(key);
    for (const one of line.parts) one.toggleAttribute("hidden", !isThere);
    line.way.setAttribute("class", `${line.kind} ${glow(perSecond)}`);
    text(line.title, `${line.label}, ${rate(perSecond)}`);
  }

  /** Write on each way which faults strike it. */
  markAll(mark) {
    for (const line of this.lines.values()) {
      const said = line.carried ? mark(line.carried) : "";
      text(line.note, said);
      line.way.classList.toggle("faulty", said !== "");
    }
  }

  build(exchanges, queues, folds, ways, vhost) {
    this.nodes = new Map();
    this.lines = new Map();
    const columns = [...inColumns(exchanges, ways), queues.map((one) => ({ ...one, kind: "queue" }))];
    arrange(columns, ways);
    // Folds stay below the queues.
    columns.at(-1).push(...folds.map((one) => ({ ...one, kind: "fold" })));
    const rows = Math.max(1, ...columns.map((column) => column.length));
    const width = 2 * MARGIN + columns.length * BOX.width + (columns.length - 1) * GAP;
    const height = rows * ROW + 8;
    columns.forEach((column, at) => {
      // A few exchanges beside many queues stay together at the top.
      const step = Math.min(height / column.length, STEP_MAX);
      column.forEach((one, index) => this.place(one, MARGIN + at * (BOX.width + GAP), (index + 0.5) * step));
    });
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "diagram map", role: "group", "aria-label": `Map of ${vhost}` });
    drawing.style.setProperty("--natural", `${width}px`);
    for (const way of ways) drawing.append(...this.way(way));
    for (const { kind, name, x, y, ...one } of this.nodes.values()) {
      if (kind === "exchange") drawing.append(...this.line(`in ${name}`, "edge", [x - MARGIN + 4, y], [x, y], `Published to ${exchangeName(name)}`, { source_kind: "publishers", source: "", destination_kind: "exchange", destination: name, reason: "publish" }));
      else drawing.append(...this.line(`out ${kind} ${name}`, "edge", [x + BOX.width, y], [x + BOX.width + MARGIN - 4, y], `Delivered from ${kind === "fold" ? foldName(one) : name}`, { source_kind: kind, source: name, destination_kind: "consumers", destination: "", reason: "deliver" }));
    }
    for (const node of this.nodes.values()) drawing.append(node.kind === "fold" ? this.fold(node) : box(node, vhost));
    this.frame.replaceChildren(drawing);
  }

  place(one, x, y) {
    const detail = svg("text", { x: x + BOX.width / 2, y: y + BOX.height / 2 - 7, "text-anchor": "middle", class: "detail" });
    const label = svg("text", { x: x + BOX.width / 2, y: y - 4, "text-anchor": "middle" });
    this.nodes.set(`${one.kind} ${one.name}`, { ...one, x, y, label, detail, title: svg("title") });
  }

  /** Return the box of a fold: two edges behind it, a link to the list of queues, or a filter by an exchange. */
  fold({ sources, x, y, label, detail, title }) {
    const content = [
      title,
      ...[6, 3, 0].map((by) => svg("rect", { x: x + 0.5 + by, y: y - BOX.height / 2 + 0.5 + by, width: BOX.width - 1, height: BOX.height - 1, rx: 4 })),
      label,
      detail,
    ];
    if (!sources?.length) return svg("a", { class: "node fold", href: "#/queues" }, content);
    const act = () => this.unfold(sources[0]);
    const pressed = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    };
    return svg("g", { class: "node fold", role: "button", tabindex: "0", onclick: act, onkeydown: pressed }, content);
  }

  way(way) {
    const from = this.nodes.get(`${way.source_kind} ${way.source}`);
    const to = this.nodes.get(`${way.destination_kind} ${way.destination}`);
    const isForward = to.x > from.x;
    // Within a column a way bends around the boxes.
    const bulge = to.x === from.x ? -70 : null;
    const start = [from.x + (isForward ? BOX.width : 0), from.y];
    const end = [to.x + (isForward || bulge ? 0 : BOX.width), to.y];
    return this.line(wayKey(way), `edge ${way.reason === "binding" ? "" : "letters"}`, start, end, `${wayLabel(way)}: ${keysOf(way)}`, way, bulge);
  }

  /** Return the elements of a line; `carried` is the way that it draws. */
  line(key, kind, [x1, y1], [x2, y2], label, carried, bulge = null) {
    const bend = (x2 - x1) / 2;
    const curve = bulge === null ? `${x1 + bend} ${y1} ${x2 - bend} ${y2}` : `${x1 + bulge} ${y1} ${x2 + bulge} ${y2}`;
    const back = bulge === null && x2 < x1 ? -1 : 1;
    const title = svg("title", null, label);
    const way = svg("path", { d: `M${x1} ${y1}C${curve} ${x2 - 5 * back} ${y2}`, class: kind }, title);
    const tip = svg("path", { d: `M${x2 - 7 * back} ${y2 - 4}L${x2} ${y2}L${x2 - 7 * back} ${y2 + 4}`, class: "tip" });
    const note = svg("text", { x: (x1 + x2) / 2 + (bulge ?? 0) / 2, y: (y1 + y2) / 2 - 5, "text-anchor": "middle", class: "fault-note" });
    const parts = [way, tip, note];
    // A wide line is easier to hit. The table has a button for each way, which the keyboard reaches.
    const press = this.press(carried);
    if (press) parts.push(svg("path", { d: way.getAttribute("d"), class: "target", onclick: press }, svg("title", null, `${label}: add a fault`)));
    this.lines.set(key, { way, tip, note, parts, title, kind, label, carried });
    return parts;
  }
}

export const wayKey = (way) => JSON.stringify([way.source_kind, way.source, way.destination_kind, way.destination, way.reason]);
const foldTitle = (one) => (one.sources?.length ? `${foldName(one)} of ${one.sources.map((name) => exchangeName(name)).join(", ")}: filter by the exchange` : `${foldName(one)}: list of all queues`);
export const foldName = ({ queues }) => `${number(queues)} more ${queues === 1 ? "queue" : "queues"}`;
export const nameOf = (kind, name) => (kind === "exchange" ? exchangeName(name) : name);
const endOf = (kind, name) => (kind === "fold" ? "other queues" : kind === "exchange" || kind === "queue" ? nameOf(kind, name) : kind);
export const wayLabel = (way) => `${endOf(way.source_kind, way.source)} to ${endOf(way.destination_kind, way.destination)}`;

/** Return the routing keys of a way in words. */
export function keysOf({ keys, more_keys: more, reason }) {
  if (reason === "publish" || reason === "deliver") return "";
  if (reason === "binding" && !keys.length) return "the queues' names";
  const shown = keys.map((key) => (key === "" ? "(empty key)" : key)).join(", ") + (more ? ` and ${number(more)} more keys` : "");
  return reason === "binding" ? shown : `dead letters${keys.join("") ? `, ${shown}` : ""}`;
}

/** Return columns of exchanges: an exchange is right of one that leads to it. */
function inColumns(exchanges, ways) {
  const depths = new Map(exchanges.map((one) => [one.name, 0]));
  const between = ways.filter((one) => one.source_kind === "exchange" && one.destination_kind === "exchange" && one.source !== one.destination);
  for (let pass = 1; pass < DEPTH_MAX; pass += 1) {
    for (const { source, destination } of between) depths.set(destination, Math.min(DEPTH_MAX - 1, Math.max(depths.get(destination), depths.get(source) + 1)));
  }
  const used = [...new Set(depths.values())].sort();
  return used.map((depth) => exchanges.filter((one) => depths.get(one.name) === depth).map((one) => ({ ...one, kind: "exchange" })));
}

/** Sort each column so that ways cross seldom: an object is near the middle of what it is connected with. */
function arrange(columns, ways) {
  const key = (one) => `${one.kind} ${one.name}`;
  for (const column of columns) column.sort((one, other) => one.name.localeCompare(other.name));
  for (const at of [...columns.keys(), ...[...columns.keys()].reverse()]) {
    const places = new Map(columns.flatMap((column) => column.map((one, index) => [key(one), (index + 0.5) / column.length])));
    const sums = new Map();
    const note = (from, to) => {
      const sum = sums.get(from) ?? [0, 0];
      sums.set(from, [sum[0] + places.get(to), sum[1] + 1]);
    };
    for (const one of ways) {
      const [from, to] = [`${one.source_kind} ${one.source}`, `${one.destination_kind} ${one.destination}`];
      note(from, to);
      note(to, from);
    }
    const middle = (one) => (sums.has(key(one)) ? sums.get(key(one))[0] / sums.get(key(one))[1] : places.get(key(one)));
    // Of queues the busy ones come first, then full and bound ones, unless a screen has them all.
    const level = (one) => (columns[at].length > SCREENFUL ? (one.level ?? 0) : 0);
    columns[at].sort((one, other) => level(other) - level(one) || middle(one) - middle(other));
  }
}

function box({ kind, name, type, x, y, label: shown, detail }, vhost) {
  const label = nameOf(kind, name);
  const lines = inLines(label, CHARACTERS);
  const [x0, y0] = [shown.getAttribute("x"), Number(shown.getAttribute("y"))];
  shown.append(...lines.map((line, index) => svg("tspan", { x: x0, y: y0 + (lines.length > 1 ? (index - 0.5) * LINE : 0) }, line)));
  return svg(
    "a",
    { class: `node ${kind}`, href: kind === "exchange" ? toExchange(vhost, name) : toQueue(vhost, name) },
    svg("title", null, `${type} ${kind} ${label}`),
    svg("rect", { x: x + 0.5, y: y - BOX.height / 2 + 0.5, width: BOX.width - 1, height: BOX.height - 1, rx: kind === "exchange" ? 23 : 4 }),
    shown,
    detail,
  );
}
