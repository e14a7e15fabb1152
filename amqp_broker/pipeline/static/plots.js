// Draws the plots of a report by uPlot, which shows the values at the pointer.

const HEIGHT = 200;
const DAY_S = 86_400;
const COLOURS = 8;

/** A number as in the tables: whole from 1,000 on, or with four digits. */
function shown(value) {
  if (value == null) return "";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
}

/** A time (UTC) as exactly as it is needed for steps and a span of this many seconds. */
function timeText(atS, stepS, spanS) {
  const text = new Date(Math.round(atS * 1000)).toISOString();
  if (stepS >= DAY_S) return text.slice(0, 10);
  if (spanS >= DAY_S) return text.slice(5, 16).replace("T", " ");
  if (stepS >= 60) return text.slice(11, 16);
  return text.slice(11, stepS >= 1 ? 19 : stepS >= 0.1 ? 21 : 22);
}

/** The places of values between gaps, which no line leads to. */
function lone(values) {
  const found = [];
  values.forEach((value, index) => {
    if (value != null && values[index - 1] == null && values[index + 1] == null) found.push(index);
  });
  return found;
}

const usual = {};

/** The colours of names: in all plots of a vhost the same, unless two lines of a plot would have one. */
function coloursOf(names, vhost) {
  const known = (usual[vhost] ??= new Map());
  const free = new Set([...Array(COLOURS).keys()]);
  for (const name of names) free.delete(known.get(name));
  const taken = new Set();
  return names.map((name) => {
    if (!known.has(name) || taken.has(known.get(name))) {
      const next = [...free][0] ?? 0;
      free.delete(next);
      if (!known.has(name)) known.set(name, next);
      taken.add(next);
      return `--c${next}`;
    }
    taken.add(known.get(name));
    return `--c${known.get(name)}`;
  });
}

/** The plot of the values that a figure of the page has as JSON. */
class Plot {
  constructor(figure) {
    this.place = figure.querySelector(".plot");
    // The pointer is shown in all plots of a vhost.
    this.vhost = figure.parentElement.id;
    const { start_ms, step_ms, lines } = JSON.parse(figure.querySelector("script").textContent);
    this.stepS = step_ms / 1000;
    this.names = lines.map(([name]) => name);
    this.colours = coloursOf(this.names, this.vhost);
    const rows = lines.map(([, values]) => values);
    this.data = [rows[0].map((_, index) => start_ms / 1000 + index * this.stepS), ...rows];
    const times = this.data[0];
    this.spanS = times.at(-1) - times[0];
    // A single point stands in the middle.
    const margin = this.spanS ? 0 : this.stepS;
    this.range = [times[0] - margin, times.at(-1) + margin];
  }

  /** Draw the plot `width` pixels wide, and all in it `scale` times as large. */
  draw(width = this.place.clientWidth, scale = 1) {
    this.plot?.destroy();
    this.plot = null;
    if (!width) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--ink"),
      font: `${11 * scale}px system-ui, sans-serif`,
      grid: { stroke: colour("--grid"), width: scale },
      ticks: { show: false },
      gap: 4 * scale,
    };
    const { stepS, spanS, range } = this;
    this.plot = new uPlot(
      {
        width,
        height: HEIGHT * scale,
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        padding: [8 * scale, 36 * scale, 0, 0],
        cursor: { y: false, drag: { setScale: false }, sync: { key: this.vhost } },
        scales: { x: { range }, y: { range: (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
        axes: [
          { ...axis, space: 90 * scale, size: 26 * scale, values: (plot, at, index, space, step) => at.map((one) => timeText(one, step, spanS)) },
          { ...axis, space: 34 * scale, size: 64 * scale, values: (plot, values) => values.map(shown) },
        ],
        series: [
          { label: "UTC", value: (plot, at) => (at == null ? "" : timeText(at, stepS, spanS)) },
          ...this.names.map((label, index) => ({
            label,
            stroke: colour(this.colours[index]),
            width: 1.6 * scale,
            value: (plot, value) => shown(value),
            points: { show: false, size: 8 * scale, fill: colour(this.colours[index]), filter: (plot, series) => lone(plot.data[series]) },
          })),
        ],
      },
      this.data,
      this.place,
    );
  }
}

const plots = [...document.querySelectorAll("figure")].filter((one) => one.querySelector("script")).map((one) => new Plot(one));
const drawAll = () => plots.forEach((plot) => plot.draw());
const root = document.documentElement;
const observer = new ResizeObserver(() => {
  for (const plot of plots) if (plot.place.clientWidth !== plot.plot?.width && !root.classList.contains("printing")) plot.draw();
});
plots.forEach((plot) => observer.observe(plot.place));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// On paper, plots are half as wide as they are drawn, in light colours.
addEventListener("beforeprint", () => {
  root.classList.add("printing");
  plots.forEach((plot) => plot.draw(720, 2));
});
addEventListener("afterprint", () => {
  root.classList.remove("printing");
  drawAll();
});
drawAll();
