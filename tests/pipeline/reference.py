"""The figures of a report, computed in plain Python, without Spark and SQL."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.pipeline.generated import Event

Row = dict[str, Any]


def percentile(values: list[int], quantile: float) -> float:
    """Return a percentile by linear interpolation."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * quantile
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def latencies(name: str, values: list[int]) -> Row:
    row: Row = {
        f"{name}_ms_{label}": percentile(values, quantile) / 1000 if values else None
        for label, quantile in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return row | {f"{name}_ms_max": max(values) / 1000 if values else None}


class Reference:
    """Reads events once, in order, and keeps the figures for the tables."""

    def __init__(self, events: list[Event], interval_ms: int) -> None:
        self.interval_us = interval_ms * 1000
        self.queues: dict[Any, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
        self.exchanges: dict[Any, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
        self.consumers: dict[Any, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
        self.publishers: dict[Any, list[Event]] = defaultdict(list)
        self.dead: dict[Any, list[Event]] = defaultdict(list)
        self.deliveries: dict[Any, list[Event]] = defaultdict(list)
        self.published: dict[Any, int] = {}
        self.arrived: dict[Any, int] = {}
        self.last_delivery: dict[Any, int] = {}
        self.acked: set[Any] = set()
        self.ended: set[Any] = set()
        self.held: dict[Any, int] = defaultdict(int)
        self.last_us = events[-1]["time_us"]
        for event in events:
            self.read(event)

    def read(self, event: Event) -> None:
        kind, at = event["event"], event["time_us"]
        number = event["message_number"]
        message = (event["vhost"], event["numbered_since_us"], number)
        if kind in ("publish", "dead_letter"):
            for queue in event["routed_queues"]:
                cell = self.queues[event["vhost"], queue, at // self.interval_us]
                cell["arrived"].append(event.get("body_bytes"))
                if number is not None:
                    self.arrived.setdefault((message, queue), at)
                    cell["change"].append(1)
        if kind == "dead_letter":
            self.dead[event["vhost"], event["queue"], event["reason"]].append(event)
        elif kind in ("publish", "confirm", "return"):
            self.read_of_exchange(event, message)
        else:
            self.read_of_queue(event, message)

    def read_of_exchange(self, event: Event, message: Any) -> None:
        kind, at = event["event"], event["time_us"]
        cell = self.exchanges[event["vhost"], event["exchange"], at // self.interval_us]
        if kind == "publish":
            cell["published"].append(event["body_bytes"])
            if "connection" in event:
                self.publishers[event["vhost"], event["connection"]].append(event)
            if not event["routed_queues"]:
                cell["unrouted"].append(event)
            if message[2] is not None:
                self.published[message] = at
        elif kind == "return":
            cell["returned"].append(event)
        else:
            cell["confirmed" if event["is_ack"] else "nacked"].append(event)
            cell["confirm_us"].append(at - self.published[message])

    def read_of_queue(self, event: Event, message: Any) -> None:
        kind, at, queue = event["event"], event["time_us"], event["queue"]
        key = (message, queue)
        is_known = message[2] is not None
        cell = self.queues[event["vhost"], queue, at // self.interval_us]
        consumer = (event["vhost"], queue, event.get("connection"), event.get("channel"))
        if kind == "deliver":
            cell["delivered"].append(event)
            if event["redelivered"]:
                cell["redelivered"].append(event)
            if is_known and key not in self.last_delivery:
                cell["wait_us"].append(at - self.arrived[key])
            self.last_delivery[key] = self.last_delivery[key, consumer] = at
            self.deliveries[key].append(event)
            self.held[key] += 1
        elif kind == "ack":
            cell["acked"].append(event)
            cell["handling_us"].append(at - self.last_delivery[key, consumer])
            self.consumers[consumer]["handling_us"].append(at - self.last_delivery[key, consumer])
            if key not in self.acked:
                cell["total_us"].append(at - self.arrived[key])
            self.acked.add(key)
        elif kind == "nack":
            cell["requeued" if event["requeue"] else "rejected"].append(event)
            self.held[key] -= event["requeue"]
        else:
            cell["expired" if kind == "expire" else "dropped"].append(event)
        is_end = kind in ("ack", "expire", "drop") or event.get("no_ack") or event.get("requeue") is False
        if is_end:
            if is_known and key not in self.ended:
                cell["change"].append(-1)
            self.ended.add(key)
        if kind in ("deliver", "ack", "nack") and consumer[2] is not None:
            counts = self.consumers[consumer]
            counts[{"deliver": "delivered", "ack": "acked", "nack": "nacked"}[kind]].append(event)
            counts["last_us"] = at

    # The tables by their keys

    def table_of_queues(self) -> dict[Any, Row]:
        counted = ("arrived", "delivered", "redelivered", "acked", "requeued", "rejected", "expired", "dropped")
        table = {}
        for key, cell in self.queues.items():
            row: Row = {name: len(cell[name]) for name in counted}
            sizes = [size for size in cell["arrived"] if size is not None]
            row["body_bytes"] = sum(sizes) if sizes else None
            for name in ("wait", "handling", "total"):
                row |= latencies(name, cell[f"{name}_us"])
            table[key] = row
        depths: dict[Any, int] = defaultdict(int)
        for vhost, queue, interval in sorted(table):
            depths[vhost, queue] += sum(self.queues[vhost, queue, interval]["change"])
            table[vhost, queue, interval]["depth"] = depths[vhost, queue] if vhost == "/" else None
        return table

    def table_of_totals(self) -> dict[Any, Row]:
        merged: dict[Any, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
        for (vhost, queue, _), cell in self.queues.items():
            for name, values in cell.items():
                merged[vhost, queue][name] += values
        table = {}
        for key, cell in merged.items():
            row: Row = {name: len(cell[name]) for name in ("arrived", "delivered", "redelivered", "acked")}
            for name in ("wait", "handling", "total"):
                row |= latencies(name, cell[f"{name}_us"])
            table[key] = row
        return table

    def table_of_publishers(self) -> dict[Any, Row]:
        return {
            key: {
                "published": len(events),
                "body_bytes": sum(event["body_bytes"] for event in events),
                "unrouted": sum(not event["routed_queues"] for event in events),
            }
            for key, events in self.publishers.items()
        }

    def table_of_exchanges(self) -> dict[Any, Row]:
        table = {}
        for key, cell in self.exchanges.items():
            row: Row = {name: len(cell[name]) for name in ("published", "unrouted", "returned", "confirmed", "nacked")}
            row["body_bytes"] = sum(cell["published"]) if cell["published"] else None
            table[key] = row | latencies("confirm", cell["confirm_us"])
        return table

    def table_of_consumers(self) -> dict[Any, Row]:
        return {
            key: {name: len(cell[name]) for name in ("delivered", "acked", "nacked")}
            | latencies("handling", cell["handling_us"])
            for key, cell in self.consumers.items()
        }

    def table_of_redelivery(self) -> dict[Any, Row]:
        table: dict[Any, Row] = {}
        for ((vhost, _, number), queue), deliveries in self.deliveries.items():
            row = table.setdefault((vhost, queue), defaultdict(int))
            again = sum(event["redelivered"] for event in deliveries)
            row["delivered"] += len(deliveries)
            row["redelivered"] += again
            if number is None:
                row["messages"] = row["messages_redelivered"] = row["deliveries_max"] = None
            else:
                row["messages"] += 1
                row["messages_redelivered"] += again > 0
                row["deliveries_max"] = max(row["deliveries_max"], len(deliveries))
        return {key: dict(row) for key, row in table.items()}

    def table_of_dead_letters(self) -> dict[Any, Row]:
        table = {}
        for (vhost, queue, reason), events in self.dead.items():
            ages = [
                event["time_us"]
                - self.arrived[(vhost, event["numbered_since_us"], event["from_message_number"]), queue]
                for event in events
            ]
            table[vhost, queue, reason] = {
                "dead_lettered": len(events),
                "lost": sum(not event["routed_queues"] for event in events),
                "in_loops": sum(event["death_count"] > 1 for event in events),
                "death_count_max": max(event["death_count"] for event in events),
                "routed_queues": sorted({queue for event in events for queue in event["routed_queues"]}),
                "age_ms_p50": percentile(ages, 0.5) / 1000,
                "age_ms_max": max(ages) / 1000,
            }
        return table

    def table_of_open(self) -> dict[Any, Row]:
        table: dict[Any, Row] = {}
        for key, at in self.arrived.items():
            if key in self.ended:
                continue
            (vhost, _, _), queue = key
            row = table.setdefault((vhost, queue), {"open": 0, "delivered": 0, "oldest_us": at})
            row["open"] += 1
            row["delivered"] += self.held[key] > 0
            row["oldest_us"] = min(row["oldest_us"], at)
        return table
