// The memory of the node by category, as far as it is known.

import { get } from "./api.js";
import { octets, path } from "./format.js";
import { part } from "./list.js";
import { Table } from "./table.js";

// Words for RabbitMQ's categories.
const WORDS = {
  queue_procs: "Classic queues and their messages",
  quorum_queue_procs: "Quorum queues and their messages",
  stream_queue_procs: "Streams",
  connection_readers: "Connections",
  connection_channels: "Channels and unacked messages",
  metadata_store: "Exchanges and bindings",
  mgmt_db: "Histories of charts",
  plugins: "Event logs",
  code: "The program at its start",
  other_proc: "Other",
};

/** Return the part of the overview with the memory; `update(node)` asks for that of a node. */
export function memoryPart() {
  const table = new Table({
    label: "Memory by category",
    columns: [
      { title: "Category", isHead: true, value: (one) => one.words },
      { title: "Memory", numeric: true, value: (one) => octets(one.octets) },
      { title: "Share", numeric: true, value: (one) => `${Math.round((100 * one.octets) / one.used)} %` },
    ],
    key: (one) => one.name,
  });
  return {
    element: part("Memory by category", table.element),
    async update(node) {
      const { memory } = await get(`/api/nodes/${path(node)}/memory`);
      const found = Object.keys(WORDS).filter((name) => memory[name] > 0);
      const rows = found.map((name) => ({ name, words: WORDS[name], octets: memory[name], used: memory.total.rss }));
      table.update(rows.sort((one, other) => other.octets - one.octets));
    },
  };
}
