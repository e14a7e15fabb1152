// Lines over the last minutes, drawn by uPlot in the colours of the theme.

import { h, text } from "./dom.js";
import { BLANK, number, rate } from "./format.js";

// Seconds, seconds between two samples, and name. Longer ones are only kept of the node and of virtual hosts.
const SPANS = [
  [60, 1, "Last minute"],
  [600, 5, "Last ten minutes"],
  [3600, 60, "Last hour"],
  [28_800, 600, "Last eight hours"],
  [86_400, 1800, "Last day"],
];
const HOUR_S = 3600;
export const DAY_S = 86_400;

/** The period that charts show, of those up to `longest` seconds. */
export function shownSpan(longest = DAY_S) {
  const kept = Number(sessionStorage.getItem("span"));
  return SPANS.find(([value]) => value === kept && value <= longest) ?? SPANS[0];
}

const withSamples = (address, age, step, groups = ["lengths", "msg_rates", "data_rates"]) => `${address}?${groups.map((group) => `${group}_age=${age}&${group}_incr=${step}`).join("&")}`;

/** The samples of one object: all its charts show the same period, and `load` asks for no other. */
export class ObjectCharts {
  constructor(charts, { longest = HOUR_S, refresh }) {
    this.longest = longest;
    this.charts = charts.map(({ group, ...options }) => ({ group, chart: new Chart({ ...options, longest, onspan: refresh }) }));
    this.elements = this.charts.map(({ chart }) => chart.element);
  }

  /** The address of an object with the parameters for its samples. */
  withSamples(address) {
    const [age, step] = shownSpan(this.longest);
    return withSamples(address, age, step);
  }

  /** The same address with the last two samples of messages alone: their rate is the last that the charts show. */
  withRates(address) {
    const [, step] = shownSpan(this.longest);
    return withSamples(address, step, step, ["msg_rates"]);
  }

  /** Draw what the broker has answered: counters of the group `message_stats`, lengths beside it. */
  draw(one) {
    for (const { group, chart } of this.charts) {
      const [age] = shownSpan(this.longest);
      chart.samples.load(group ? one[group] : one, age, chart.isRate);
      chart.draw();
    }
  }

  leave() {
    for (const { chart } of this.charts) chart.leave();
  }

  /** Return the page that shows the charts: they end with it. */
  on(page) {
    const { leave } = page;
    page.leave = () => {
      leave();
      this.leave();
    };
    return page;
  }
}

const LOOKS = {
  messages_ready: ["Ready", "--series-1"],
  messages_unacknowledged: ["Unacked", "--series-2"],
  publish: ["Publish", "--series-1"],
  publish_in: ["Publish in", "--series-1"],
  publish_out: ["Publish out", "--series-3"],
  deliver_get: ["Deliver / get", "--series-3"],
  ack: ["Ack", "--series-2"],
  confirm: ["Confirm", "--series-4"],
  redeliver: ["Redelivered", "--series-5"],
  return_unroutable: ["Unroutable, returned", "--series-6"],
  drop_unroutable: ["Unroutable, dropped", "--series-7"],
  recv_oct: ["From client", "--series-1"],
  send_oct: ["To client", "--series-3"],
};

/** A chart of Samples. Show `element`; call `draw()` for each new sample, and `leave()` at the end. */
export class Chart {
  constructor({ title, samples, isRate = false, format = isRate ? rate : number, height = 168, longest = DAY_S, onspan = () => {} }) {
    this.samples = samples;
    this.height = height;
    this.isRate = isRate;
    this.format = format;
    this.longest = longest;
    this.onspan = onspan;
    [this.span] = shownSpan(longest);
    this.values = samples.series.map(() => h("b", null, BLANK));
    this.place = h("div", { class: "plot", role: "img", "aria-label": title });
    this.spans = h(
      "select",
      { "aria-label": `Period shown: ${title}`, onchange: (event) => this.setSpan(Number(event.target.value)) },
      SPANS.filter(([value]) => value <= longest).map(([value, , label]) => h("option", { value, selected: value === this.span }, label)),
    );
    this.element = h(
      "figure",
      { class: "chart" },
      h("figcaption", null, h("h2", null, title), this.spans),
      this.place,
      h(
        "ul",
        { class: "legend" },
        samples.series.map((name, index) => h("li", { class: `key-${LOOKS[name][1].slice(2)}` }, h("i"), LOOKS[name][0], this.values[index])),
      ),
    );
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.place);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => this.build();
    this.scheme.addEventListener("change", this.repaint);
    addEventListener("themechange", this.repaint);
    this.follow = () => {
      [this.span] = shownSpan(this.longest);
      this.spans.value = this.span;
      this.draw();
    };
    addEventListener("spanchange", this.follow);
  }

  setSpan(span) {
    sessionStorage.setItem("span", span);
    dispatchEvent(new Event("spanchange"));
    this.onspan();
  }

  build() {
    this.plot?.destroy();
    this.plot = null;
    const width = this.place.clientWidth;
    if (!width) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--muted"),
      font: `11px ${style.getPropertyValue("--sans")}`,
      grid: { stroke: colour("--grid"), width: 1 },
      ticks: { show: false },
    };
    const time = (value) => new Date(value * 1000).toLocaleTimeString("en-GB", this.span > HOUR_S ? { hour: "2-digit", minute: "2-digit" } : {});
    this.plot = new window.uPlot(
      {
        width,
        height: this.height,
        cursor: { y: false, points: { size: 6 }, drag: { setScale: false } },
        legend: { show: false },
        padding: [8, 24, 0, 0],
        scales: { y: { range: (_, __, highest) => [0, Math.max(highest * 1.15, 5)] } },
        axes: [
          { ...axis, space: 76, values: (_, values) => values.map(time), size: 24 },
          { ...axis, size: 52, space: 34, values: (_, values) => values.map((value) => short(value)) },
        ],
        series: [
          {},
          ...this.samples.series.map((name) => ({
            label: LOOKS[name][0],
            stroke: colour(LOOKS[name][1]),
            fill: colour(LOOKS[name][1]) + "14",
            width: 1.6,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
      },
      this.data(),
      this.place,
    );
    this.draw();
  }

  data() {
    const { times, rows } = this.samples;
    const first = times.findIndex((time) => time >= times[times.length - 1] - this.span);
    return [times.slice(first), ...rows.map((row) => row.slice(first))];
  }

  draw() {
    const { times } = this.samples;
    if (!times.length) return;
    if (!this.plot) {
      if (this.place.clientWidth) this.build();
      return;
    }
    const end = times[times.length - 1];
    this.plot.setData(this.data(), false);
    this.plot.setScale("x", { min: end - this.span, max: end });
    this.tell(this.plot.cursor.idx);
  }

  /** Show the values at the cursor, or the last ones. */
  tell(index) {
    const data = this.plot?.data ?? this.data();
    const at = index ?? data[0].length - 1;
    this.values.forEach((value, series) => text(value, this.format(data[series + 1][at])));
  }

  resize() {
    if (!this.plot) this.draw();
    else if (this.place.clientWidth && this.place.clientWidth !== this.plot.width) this.plot.setSize({ width: this.place.clientWidth, height: this.height });
  }

  leave() {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
    removeEventListener("themechange", this.repaint);
    removeEventListener("spanchange", this.follow);
    this.plot?.destroy();
  }
}

function short(value) {
  if (value >= 1e6) return `${value / 1e6} M`;
  if (value >= 1e3) return `${value / 1e3} k`;
  return Number.isInteger(value) ? String(value) : "";
}
