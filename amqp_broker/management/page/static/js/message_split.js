// The messages of a queue: ready and unacked, in memory and persistent, in number and in size.

import { BLANK, number, octets } from "./format.js";
import { Table } from "./table.js";

const COLUMNS = [
  ["Total", "messages", "message_bytes"],
  ["Ready", "messages_ready", "message_bytes_ready"],
  ["Unacked", "messages_unacknowledged", "message_bytes_unacknowledged"],
  ["In memory", "messages_ram", "message_bytes_ram"],
  ["Persistent", "messages_persistent", "message_bytes_persistent"],
  ["Paged out", "messages_paged_out", "message_bytes_paged_out"],
];

/** Return a table; `update(queue)` shows a queue. */
export function messageSplit() {
  const table = new Table({
    label: "Messages by place",
    columns: [
      { title: "Messages", isHead: true, value: (row) => row.title },
      ...COLUMNS.map(([title, count, size]) => ({ title, numeric: true, value: ({ queue, isSize }) => (isSize ? octets(queue[size]) : number(queue[count])) })),
    ],
    key: (row) => row.title,
  });
  return {
    element: table.element,
    update: (queue) => table.update([{ title: "Number", queue, isSize: false }, { title: "Size", queue, isSize: true }]),
  };
}

/** Return the share of the time in which a queue could deliver at once, in percent. */
export const capacity = (queue) => (queue.consumers && typeof queue.consumer_capacity === "number" ? `${Math.round(queue.consumer_capacity * 100)} %` : BLANK);
