// A drawing of bindings: the sources of the messages of an exchange or a queue, and their destinations.

import { h, svg } from "./dom.js";
import { inLines, shortened } from "./names.js";
import { exchangeName, plain, toExchange, toQueue } from "./format.js";

const SHOWN_MAX = 40;
const ROW = 52;
const BOX = 38;
const LINE = 15;
const WIDTH = 900;
const COLUMN = 250;
const CHARACTERS = 34;

/** `bindings` lead to `centre` or away from it; centre: { kind: "queue"|"exchange", name, vhost, label } */
export function diagram(centre, bindings) {
  const into = bindings.filter((one) => one.destination === centre.name && one.destination_type === centre.kind);
  const from = centre.kind === "exchange" ? bindings.filter((one) => one.source === centre.name && !into.includes(one)) : [];
  const left = nodes(into, (one) => ["exchange", one.source]);
  const right = nodes(from, (one) => [one.destination_type, one.destination]);
  const rows = Math.max(left.length, right.length, 1);
  const height = rows * ROW + 8;
  const both = left.length && right.length;
  const x = { left: 0, centre: both ? (WIDTH - COLUMN) / 2 : right.length ? 0 : WIDTH - COLUMN, right: WIDTH - COLUMN };
  const middle = height / 2;
  const at = (index, count) => ((index + 0.5) * height) / count;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "diagram", role: "group", "aria-label": `Bindings of ${centre.label}` });
  left.forEach((node, index) => {
    drawing.append(...edge(x.left + COLUMN, at(index, left.length), x.centre, middle, { ...node, isLeft: true }));
  });
  right.forEach((node, index) => {
    drawing.append(...edge(x.centre + COLUMN, middle, x.right, at(index, right.length), node));
  });
  left.forEach((node, index) => drawing.append(box(x.left, at(index, left.length), node, centre.vhost)));
  right.forEach((node, index) => drawing.append(box(x.right, at(index, right.length), node, centre.vhost)));
  drawing.append(box(x.centre, middle, { kind: centre.kind, name: centre.name, isCentre: true }, centre.vhost));
  const hidden = Math.max(0, count(into, "source") - SHOWN_MAX) + Math.max(0, count(from, "destination") - SHOWN_MAX);
  return h("div", { class: "drawing", tabindex: 0, role: "group", "aria-label": "Bindings as a picture" }, drawing, hidden ? h("p", { class: "note" }, `And ${hidden} more; the table below lists all.`) : null);
}

const count = (bindings, end) => new Set(bindings.map((one) => one[end])).size;

function nodes(bindings, end) {
  const found = new Map();
  for (const one of bindings) {
    const [kind, name] = end(one);
    const key = `${kind} ${name}`;
    if (!found.has(key) && found.size >= SHOWN_MAX) continue;
    if (!found.has(key)) found.set(key, { kind, name, labels: [] });
    const hasArguments = Object.keys(one.arguments ?? {}).length > 0;
    found.get(key).labels.push(hasArguments ? plain(one.arguments) : one.routing_key);
  }
  return [...found.values()];
}

function edge(x1, y1, x2, y2, node) {
  const bend = (x2 - x1) / 2;
  const line = svg("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 5} ${y2}`, class: "edge" });
  const tip = svg("path", { d: `M${x2 - 7} ${y2 - 4}L${x2} ${y2}L${x2 - 7} ${y2 + 4}`, class: "tip" });
  const label = node.labels.map((one) => (one === "" ? "(empty key)" : one)).join(", ");
  // Near the end with a single edge, away from the point where edges meet.
  const share = node.isLeft ? [0.3, 0.22] : [0.7, 0.78];
  const place = { x: x1 + (x2 - x1) * share[0], y: y1 + (y2 - y1) * share[1] - 5 };
  const key = svg("text", { ...place, class: "key", "text-anchor": "middle" }, shortened(label, Math.max(3, room(x1, x2))), svg("title", null, label));
  return [line, tip, key];
}

const room = (x1, x2) => Math.floor((x2 - x1) / 7.5);

function box(x, y, node, vhost) {
  const label = node.kind === "exchange" ? exchangeName(node.name) : node.name;
  const lines = inLines(label, CHARACTERS);
  const content = [
    svg("rect", { x: x + 0.5, y: y - BOX / 2 + 0.5, width: COLUMN - 1, height: BOX - 1, rx: node.kind === "exchange" ? 19 : 4 }),
    svg("text", { "text-anchor": "middle" }, lines.map((line, index) => svg("tspan", { x: x + COLUMN / 2, y: y + 4 + (index - (lines.length - 1) / 2) * LINE }, line)), svg("title", null, `${node.kind} ${label}`)),
  ];
  const kind = `node ${node.kind} ${node.isCentre ? "centre" : ""}`;
  if (node.isCentre) return svg("g", { class: kind }, content);
  return svg("a", { class: kind, href: node.kind === "exchange" ? toExchange(vhost, node.name) : toQueue(vhost, node.name) }, content);
}

