// How many connections, channels and queues come and go. Many that live shortly cost much: clients should keep theirs.

import { remove } from "./api.js";
import { h } from "./dom.js";
import { confirm } from "./form.js";
import { number, rate } from "./format.js";
import { part } from "./list.js";
import { Table } from "./table.js";

const KINDS = [
  ["Connections", "connection_created", "connection_closed"],
  ["Channels", "channel_created", "channel_closed"],
  ["Queues", "queue_created", "queue_deleted"],
  ["Queues declared", "queue_declared", null],
];

/** Return the part of the overview with churn; `update(churn_rates)` shows new numbers. */
export function churnPart() {
  const per = (name) => (row) => (row[name] ? rate(row.churn[`${row[name]}_details`]?.rate ?? 0) : null);
  const total = (name) => (row) => (row[name] ? number(row.churn[row[name]] ?? 0) : "");
  const table = new Table({
    label: "Churn",
    columns: [
      { title: "Objects", isHead: true, value: (row) => row.kind },
      { title: "Created", numeric: true, value: total("created") },
      { title: "Created per second", numeric: true, value: per("created") },
      { title: "Closed or deleted", numeric: true, value: total("gone") },
      { title: "Closed per second", numeric: true, value: per("gone") },
    ],
    key: (row) => row.kind,
  });
  return {
    element: part("Churn", table.element),
    update: (churn) => table.update(KINDS.map(([kind, created, gone]) => ({ kind, created, gone, churn: churn ?? {} }))),
  };
}

/** Return the button that resets the statistics of the broker. */
export function resetButton(done) {
  return h(
    "button",
    {
      type: "button",
      "aria-haspopup": "dialog",
      onclick: () =>
        confirm({
          title: "Reset statistics?",
          note: "Rates and charts begin anew. Counters, messages, queues and connections stay.",
          action: "Reset statistics",
          submit: async () => {
            await remove("/api/reset");
            done();
          },
          done: () => "The statistics were reset",
        }),
    },
    "Reset statistics",
  );
}
