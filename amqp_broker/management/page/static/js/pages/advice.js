// Advice about habits of clients that cause trouble in production.

import { remove } from "../api.js";
import { h } from "../dom.js";
import { confirm } from "../form.js";
import { list as listPage } from "../list.js";
import { cell } from "../table.js";

const PLACES = ["user", "client", "exchange", "queue", "connection", "channel"];
const LOOK_MS = 2000;

export function list() {
  const page = listPage({
    title: "Advice",
    path: () => "/_broker/advice",
    kinds: [],
    isPaged: false,
    sort: "first_seen_ms",
    key: (advice) => [advice.habit, advice.vhost, ...PLACES.slice(0, 4).map((place) => advice[place] ?? "")].join("\n"),
    columns: [
      { title: "Habit", isKept: true, sort: "habit", value: (advice) => advice.habit },
      { title: "Effect", isKept: true, wide: true, value: (advice) => advice.sentence },
      { title: "Remedy", wide: true, value: (advice) => advice.remedy },
      { title: "Virtual host", sort: "vhost", value: (advice) => advice.vhost },
      { title: "Where", wide: true, value: (advice) => cell(where(advice), () => h("span", null, where(advice))) },
      { title: "Times", sort: "count", numeric: true, value: (advice) => advice.count },
    ],
    actions: [h("button", { type: "button", onclick: clear }, "Clear all")],
    empty: h("div", null, h("b", null, "No advice."), h("p", null, "Advice about habits of clients that work in a test and cause trouble in production appears here.")),
  });
  // The broker sends no events about advice.
  const timer = setInterval(() => document.hidden || page.refresh(), LOOK_MS);

  function clear() {
    confirm({
      title: "Clear all advice?",
      note: "Advice reappears when the habit occurs again.",
      action: "Clear all",
      submit: async () => {
        await remove("/_broker/advice");
        page.refresh();
      },
      done: "All advice was cleared",
    });
  }

  return {
    ...page,
    leave: () => {
      clearInterval(timer);
      page.leave();
    },
  };
}

function where(advice) {
  const parts = PLACES.filter((place) => place in advice).map((place) => `${place} ${advice[place]}`);
  return [...parts, ...(advice.detail ? [advice.detail] : [])].join(", ");
}
