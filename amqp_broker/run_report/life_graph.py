"""The life of a message as a graph: from its publisher through exchanges and queues to its consumers."""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.run_report.drawing import Edge, Graph, Node, joined

DEFAULT_EXCHANGE: Final = "(default exchange)"
PUBLISHER: Final = "publisher"
NO_QUEUE: Final = "no queue"
# Nodes of a graph; a message with more, such as one to a hundred queues, is drawn without the others.
NODES_MAX: Final = 24
# Words about a queue that has given a message up.
AT_QUEUES: Final = {"expire": "expired", "drop": "dropped", "refuse": "refused"}

Row = dict[str, Any]


def life_graph(life: Row) -> Graph:
    """Return the graph of a row of `lives`. `hidden` of a graph counts the nodes that it lacks."""
    drawing = _Life()
    for event in life["events"]:
        drawing.add(event)
    drawing.end(life["ends"])
    drawing.graph.hidden = len(drawing.hidden)
    return drawing.graph


class _Life:
    def __init__(self) -> None:
        self.graph = Graph()
        self.hidden = set[str]()
        # How often an edge was taken, and words about it.
        self._taken: dict[tuple[str, str, str], tuple[int, dict[str, None]]] = {}
        self._words: dict[str, dict[str, None]] = {}
        # The consumers that got the message, the last one at the end, by message number and queue.
        self._holders: dict[tuple[int, str], list[tuple[str, str, int]]] = {}
        # Messages that were published in a transaction.
        self._in_transaction = set[int]()

    def add(self, event: Row) -> None:
        kind, queue = event["event"], event["queue"]
        if kind in ("publish", "tx_publish", "route"):
            self._publish(event)
        elif kind == "dead_letter":
            self._dead_letter(event)
        elif kind == "move":
            for target in event["routed_queues"]:
                self._edge(self._queue(queue), self._queue(target), "move", "moved")
        elif kind == "deliver":
            self._deliver(event)
        elif kind in ("ack", "nack", "requeue"):
            self._settle(event)
        elif kind == "fault":
            self._fault(event)
        elif kind in ("confirm", "return", "rollback"):
            self._answer(event)
        elif kind in AT_QUEUES and queue is not None:
            reason = f": {event['reason']}".replace("_", " ") if kind == "drop" and event.get("reason") else ""
            self._say(self._queue(queue), f"{AT_QUEUES[kind]}{reason}", "lost")

    def end(self, ends: list[Row]) -> None:
        """Show where the message is now."""
        for end in ends:
            if end["queue"] is None:
                continue
            key = f"queue {end['queue']}"
            if end["state"] in ("ready", "delayed"):
                self._say(key, end["state"], "here")
            for connection, channel, tag in end["holders"]:
                self._say(_client(connection, channel, tag or end["queue"]), "unacked", "held")
        for key, words in self._words.items():
            self.graph.nodes[key].detail = joined(words)
        for (source, target, tone), (times, words) in self._taken.items():
            self.graph.edges.append(Edge(source, target, joined([*words, f"{times} times" if times > 1 else ""]), tone))

    # Events

    def _publish(self, event: Row) -> None:
        kind, number = event["event"], event["message_number"]
        publisher = ""
        if kind != "route" and "connection" in event:
            publisher = self._node(PUBLISHER, "client", "publisher", _address(event))
        exchange = self._exchange(event["exchange"])
        # The publish of a transaction goes on at the commit.
        if publisher and number not in self._in_transaction:
            self._edge(publisher, exchange, "", joined(event["routing_keys"]))
        if kind == "tx_publish":
            self._in_transaction.add(number)
            return
        if event.get("delayed_in"):
            self._say(exchange, "delayed it")
        if event.get("duplicate_in"):
            self._say(exchange, "dropped it as a duplicate")
        self._lead(exchange, event)

    def _lead(self, exchange: str, event: Row) -> None:
        for queue in event["routed_queues"]:
            word = "by other exchanges" if queue in event.get("indirect", ()) else ""
            self._edge(exchange, self._queue(queue), "indirect" if word else "", word)
        for queue in event.get("kept_from", ()):
            self._edge(exchange, self._node(f"queue {queue}", "queue", queue), "lost", f"fault {event['discarded_by']}")
        if event.get("kept_from_delay"):
            self._say(exchange, f"fault {event['discarded_by']} kept it from its delay", "lost")
        if event.get("kept_from") or event.get("kept_from_delay"):
            return
        is_reply = any(key.startswith("amq.rabbitmq.reply-to.") for key in event["routing_keys"])
        if is_reply and not event["routed_queues"]:
            self._edge(exchange, self._node(NO_QUEUE, "client", "direct reply"), "")
        elif not event["routed_queues"] and not (event.get("delayed_in") or event.get("duplicate_in")):
            self._edge(exchange, self._node(NO_QUEUE, "none", "no queue", tone="lost"), "lost")

    def _dead_letter(self, event: Row) -> None:
        queue = self._queue(event["queue"])
        # An exchange has one node, by which a letter may come to the queue where it died.
        exchange = self._exchange(event["exchange"])
        self._edge(queue, exchange, "letters", event["reason"])
        self._lead(exchange, event)

    def _deliver(self, event: Row) -> None:
        queue, tag = event["queue"], event["consumer_tag"]
        key = _client(event["connection"], event["channel"], tag or queue)
        consumer = self._node(key, "client", tag or "basic.get", _address(event))
        self._edge(self._queue(queue), consumer, "")
        holder = consumer, str(event["connection"]), int(event["channel"])
        self._holders.setdefault((event["message_number"], queue), []).append(holder)
        if event["no_ack"]:
            self._say(consumer, "took it without ack", "acked")

    def _settle(self, event: Row) -> None:
        # A queue makes a message ready again when its delay ends.
        if event["event"] == "requeue" and event.get("reason") == "due":
            return
        consumer = self._holder(event)
        if consumer not in self.graph.nodes:
            return
        if event["event"] == "ack":
            self._say(consumer, "acked", "acked")
        elif event["event"] == "nack" and not event["requeue"]:
            self._say(consumer, "rejected", "lost")
        else:
            reason = str(event.get("reason", "requeued")).replace("_", " ")
            self._edge(consumer, self._queue(event["queue"]), "back", reason)

    def _holder(self, event: Row) -> str:
        """Return the consumer that an event is about, or ""."""
        holders = self._holders.get((event["message_number"], event["queue"]), [])
        tag = event.get("consumer_tag")
        for consumer, connection, channel in reversed(holders):
            is_client = event.get("connection", connection) == connection and event.get("channel", channel) == channel
            if is_client and (not tag or consumer == _client(connection, channel, tag)):
                return consumer
        return ""

    def _fault(self, event: Row) -> None:
        if event.get("is_taken") is False:
            publisher = self._node(PUBLISHER, "client", "publisher", _address(event))
            self._edge(publisher, self._exchange(event["exchange"]), "lost", "not taken")
        key = f"queue {event['queue']}" if event["queue"] is not None else PUBLISHER
        self._say(key, f"fault {event['action']}", "fault")

    def _answer(self, event: Row) -> None:
        word = {"confirm": "confirmed", "return": "returned", "rollback": "not committed"}[event["event"]]
        word = "nacked" if event.get("ack") is False else word
        self._say(PUBLISHER, word, "" if word == "confirmed" else "lost")

    # Nodes

    def _node(self, key: str, shape: str, label: str, detail: str = "", tone: str = "") -> str:
        if key not in self.graph.nodes:
            if len(self.graph.nodes) < NODES_MAX:
                self.graph.nodes[key] = Node(shape, label, detail, tone)
            else:
                self.hidden.add(key)
        return key

    def _exchange(self, name: str) -> str:
        return self._node(f"exchange {name}", "exchange", name or DEFAULT_EXCHANGE)

    def _queue(self, name: str) -> str:
        return self._node(f"queue {name}", "queue", name)

    def _edge(self, source: str, target: str, tone: str, word: str = "") -> None:
        if source in self.graph.nodes and target in self.graph.nodes:
            times, words = self._taken.get((source, target, tone), (0, {}))
            if word:
                words[word] = None
            self._taken[source, target, tone] = times + 1, words

    def _say(self, key: str, word: str, tone: str = "") -> None:
        """Write a word into a node, and colour it: the last colour counts."""
        if key in self.graph.nodes:
            self._words.setdefault(key, {})[word] = None
            self.graph.nodes[key].tone = tone or self.graph.nodes[key].tone


def _client(connection: str, channel: int, tag: str) -> str:
    """Return the key of a consumer, or of a client that gets messages of a queue by basic.get."""
    return f"client {connection} {channel} {tag}"


def _address(event: Row) -> str:
    """Return the address of the client of an event."""
    return str(event["connection"]).partition(" -> ")[0]
