// The broker's own name and mark, and the version of RabbitMQ that it is compatible with.

import { get } from "./api.js";
import { h, svg, text } from "./dom.js";

export const NAME = "amqp-broker";

/** Return the mark: one message in, two copies out. /favicon.svg has the same drawing. */
export const mark = () =>
  svg(
    "svg",
    { viewBox: "0 0 24 24", class: "mark", "aria-hidden": "true" },
    svg("circle", { cx: 12, cy: 12, r: 12 }),
    svg("path", { d: "M5.5 12h5.5M11 12c3 0 3-4.5 6.3-4.5M11 12c3 0 3 4.5 6.3 4.5" }),
    [[5.6, 12], [17.8, 7.5], [17.8, 16.5]].map(([cx, cy]) => svg("circle", { cx, cy, r: 1.9, class: "end" })),
  );

/** Return an element that names the version of RabbitMQ; the broker is asked for it without a login. */
export function compatible() {
  const element = h("small", { class: "compatible" });
  const say = (version) => text(element, `compatible with RabbitMQ ${version.split(".").slice(0, 2).join(".")}`);
  get("/api/version").then(say, () => {});
  return element;
}
