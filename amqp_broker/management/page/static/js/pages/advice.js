// Advice about habits of clients that cause trouble in production: a row for each habit, with examples of its places.

import { get, remove } from "../api.js";
import { h, text, toast } from "../dom.js";
import { confirm } from "../form.js";
import { date, number, path, toExchange, toQueue } from "../format.js";
import { state } from "../state.js";
import { cell, Table } from "../table.js";

const PLACES = ["vhost", "user", "client", "exchange", "queue", "connection", "channel"];
// The addresses of the places that have a page.
const ADDRESSES = {
  exchange: (one) => one.vhost && toExchange(one.vhost, one.exchange === "(default)" ? "" : one.exchange),
  queue: (one) => one.vhost && toQueue(one.vhost, one.queue),
  connection: (one) => `#/connections/${path(one.connection)}`,
};
const LOOK_MS = 2000;

export function list() {
  // Habits whose places are all shown, each with its places.
  const unfolded = new Map();
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const table = new Table({
    label: "Advice",
    columns: [
      { title: "Habit", isKept: true, isHead: true, value: (row) => cell(row.habit, () => h("b", null, row.habit)) },
      { title: "Effect and remedy", isKept: true, wide: true, value: (row) => cell([row.sentence, row.remedy], () => [h("p", null, row.sentence), h("p", { class: "muted" }, row.remedy)]) },
      { title: "Times", numeric: true, value: (row) => number(row.count) },
      { title: "Messages", numeric: true, value: (row) => (row.messages ? number(row.messages) : null) },
      { title: "First seen", minor: true, value: (row) => date(row.first_seen_ms) },
      { title: "Seen at", isKept: true, wide: true, value: (row) => cell(shown(row), () => places(row)) },
      { title: "", isKept: true, value: (row) => (row.places > row.examples.length ? cell(unfolded.has(row.habit), () => unfolder(row)) : "") },
    ],
    key: (row) => row.habit,
    empty: h("div", null, h("b", null, "No advice."), h("p", null, "Advice about habits of clients that work in a test and cause trouble in production appears here.")),
  });

  const where = () => (state.vhost ? { vhost: state.vhost } : {});

  async function refresh() {
    try {
      const rows = await get(`/_broker/advice-habits?${new URLSearchParams(where())}`);
      const present = new Set(rows.map((row) => row.habit));
      for (const habit of unfolded.keys()) {
        if (present.has(habit)) unfolded.set(habit, await all(habit));
        else unfolded.delete(habit);
      }
      problem.hidden = true;
      table.update(rows);
    } catch (error) {
      problem.hidden = false;
      text(problem, error.message);
    }
  }

  const all = async (habit) => (await get(`/_broker/advice?${new URLSearchParams({ ...where(), habit })}`)).reverse();
  const shown = (row) => [row.beyond, (unfolded.get(row.habit) ?? row.examples).map(place)];

  function places(row) {
    const known = unfolded.get(row.habit) ?? row.examples;
    const rest = row.places - known.length;
    return [
      h("ul", { class: "places" }, known.map((one) => h("li", null, linked(one)))),
      rest > 0 ? h("p", { class: "muted" }, `and in ${number(rest)} more places`) : null,
      row.beyond ? h("p", { class: "muted" }, `and ${number(row.beyond)} times in places that are not kept`) : null,
    ];
  }

  function unfolder(row) {
    const isOpen = unfolded.has(row.habit);
    const label = isOpen ? "Show fewer" : "Show all";
    return h("button", { type: "button", class: "small", "aria-expanded": String(isOpen), "aria-label": `${label} places of ${row.habit}`, onclick: () => toggle(row.habit) }, label);
  }

  async function toggle(habit) {
    if (unfolded.has(habit)) unfolded.delete(habit);
    else {
      try {
        unfolded.set(habit, await all(habit));
      } catch (error) {
        return toast(error.message, "error");
      }
    }
    await refresh();
    table.rows.get(habit)?.querySelector("button")?.focus();
  }

  function clear() {
    confirm({
      title: "Clear all advice?",
      note: `${state.vhost ? `Only advice for the virtual host ${state.vhost} is cleared. ` : ""}Advice reappears when the habit occurs again.`,
      action: "Clear all",
      submit: async () => {
        await remove(`/_broker/advice?${new URLSearchParams(where())}`);
        refresh();
      },
      done: "All advice was cleared",
    });
  }

  const element = h("section", { class: "list advice" }, h("div", { class: "title" }, h("h1", null, "Advice"), h("div", { class: "actions" }, h("button", { type: "button", onclick: clear }, "Clear all"))), problem, table.element);
  // The broker sends no events about advice.
  const timer = setInterval(() => document.hidden || refresh(), LOOK_MS);
  return { title: "Advice", element, refresh, leave: () => clearInterval(timer) };
}

/** Return a place as text. */
function place(advice) {
  const parts = PLACES.filter((one) => one in advice).map((one) => `${one} ${advice[one]}`);
  return [...parts, ...(advice.detail ? [advice.detail] : [])].join(", ");
}

/** Return a place with links to its exchange, queue and connection. */
function linked(advice) {
  const parts = PLACES.filter((one) => one in advice).map((one) => {
    const href = ADDRESSES[one]?.(advice);
    return href ? [`${one} `, h("a", { href }, advice[one])] : `${one} ${advice[one]}`;
  });
  return [...parts, ...(advice.detail ? [advice.detail] : [])].flatMap((part, index) => (index ? [", ", part] : [part])).flat();
}
