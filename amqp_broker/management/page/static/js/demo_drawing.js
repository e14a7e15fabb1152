// Pictures of the demo: the confirms over time with the faults, and a cell for each message.

import { h, svg, text } from "./dom.js";
import { number, rate } from "./format.js";

const WIDTH = 900;
const HEIGHT = 90;
const FAULTS = 16;
const CELL = 10;
const COLUMNS = Math.floor(WIDTH / CELL);
// The states in `grid`, with their names and the outlines of their cells: each is known without its colour.
const STATES = [
  ["cell-to-come", "to come", (x, y) => `M${x + 4} ${y + 4}h2v2h-2z`],
  ["cell-confirmed", "confirmed", (x, y) => `M${x + 1} ${y + 1}h8v8h-8z`],
  ["cell-retried", "confirmed after a retry", (x, y) => `M${x + 1} ${y + 1}h8v8h-8zM${x + 3} ${y + 3}v4h4v-4z`],
  ["cell-flight", "in flight", (x, y) => `M${x + 2} ${y + 1}l7 4l-7 4z`],
  ["cell-lost", "not confirmed", (x, y) => `M${x + 1} ${y + 2}l1 -1l3 3l3 -3l1 1l-3 3l3 3l-1 1l-3 -3l-3 3l-1 -1l3 -3z`],
];
const SECOND_MS = 1000;

/** The confirms per second since the start, with a mark where each fault began. */
export class TimeLine {
  constructor() {
    this.label = svg("title", null, "Confirms since the start");
    this.bars = svg("path", { class: "bars" });
    this.marks = svg("g", { class: "marks" });
    this.top = h("p", { class: "note" });
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + FAULTS}`, class: "demo-picture", role: "img" }, this.label, this.bars, this.marks);
    this.element = h("div", null, this.drawing, this.top);
  }

  update({ pulse, bucket_ms: bucketMs, plan, elapsed_ms: elapsedMs }) {
    const highest = Math.max(1, ...pulse);
    // At first, the line is not wider than its time: ten seconds fill it.
    const step = WIDTH / Math.max(pulse.length, 10000 / bucketMs);
    this.bars.setAttribute("d", pulse.map((count, at) => (count ? bar(at * step, Math.max(1, (count / highest) * HEIGHT), step) : "")).join(""));
    const begun = plan.filter((event) => event.began_ms !== null);
    this.marks.replaceChildren(...begun.map((event) => mark((event.began_ms / bucketMs) * step, event)));
    const most = rate((Math.max(0, ...pulse) * SECOND_MS) / bucketMs);
    text(this.label, `Confirms since the start, at most ${most}; ${begun.map((event) => `at ${seconds(event.began_ms)} the broker ${event.sentence}`).join(", ") || "no fault yet"}`);
    text(this.top, `Confirms of ${seconds(elapsedMs)}, at most ${most}. A mark shows where a fault began.`);
  }
}

export const seconds = (ms) => `${(ms / SECOND_MS).toFixed(1)} s`;
const bar = (x, height, width) => `M${x.toFixed(1)} ${HEIGHT}v${-height.toFixed(1)}h${Math.max(0.5, width - 0.5).toFixed(1)}V${HEIGHT}z`;
const mark = (x, event) => svg("path", { d: `M${x.toFixed(1)} ${HEIGHT + 3}l5 10h-10z` }, svg("title", null, `${seconds(event.began_ms)}: the broker ${event.sentence}`));

/** A cell for each message in order, or for the worst of a few. */
export class MessageGrid {
  constructor() {
    this.label = svg("title", null, "Messages");
    this.paths = STATES.map(([name]) => svg("path", { class: name, "fill-rule": "evenodd" }));
    this.drawing = svg("svg", { class: "demo-picture grid", role: "img" }, this.label, this.paths);
    this.counts = STATES.map(() => h("span"));
    const legend = STATES.map(([name, , outline], at) => h("span", null, svg("svg", { viewBox: "0 0 10 10", class: "demo-key", "aria-hidden": "true" }, svg("path", { class: name, "fill-rule": "evenodd", d: outline(0, 0) })), this.counts[at]));
    this.whole = h("span");
    this.element = h("div", null, this.drawing, h("p", { class: "note demo-keys" }, this.whole, legend));
  }

  update({ grid, messages }) {
    const cells = STATES.map(() => []);
    Array.from(grid, (state, at) => cells[Number(state)].push(at));
    this.drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${Math.ceil(grid.length / COLUMNS) * CELL}`);
    STATES.forEach(([, , outline], state) => this.paths[state].setAttribute("d", cells[state].map((at) => outline((at % COLUMNS) * CELL, Math.floor(at / COLUMNS) * CELL)).join("")));
    const share = Math.ceil(messages / grid.length);
    const counts = STATES.map(([, name], state) => `${number(cells[state].length)} ${name}`);
    counts.forEach((one, at) => text(this.counts[at], one));
    const shared = share > 1 ? `, a cell for the worst of ${share} each` : "";
    text(this.whole, `${number(messages)} messages${shared}:`);
    text(this.label, `${number(messages)} messages${shared}: ${counts.join(", ")}`);
  }
}
