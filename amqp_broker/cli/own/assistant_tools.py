"""The tools of `amqp-broker mcp`: requests to a running broker.

Their names, parameters and docstrings are what an assistant reads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from anyio import to_thread
from pydantic import Field

from amqp_broker import __version__
from amqp_broker.broker.observe.matching import EVENTS
from amqp_broker.cli.own.broker_client import NotMet, ask
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.messages import line_of
from amqp_broker.exit_codes import EX_USAGE

QUEUES_MAX: Final = 200
MESSAGES_MAX: Final = 50
EVENTS_MAX: Final = 200
# Events of a request that reads the whole event log.
PAGE: Final = 1000
# Octets of a body in an answer.
BODY_BYTES_MAX: Final = 1000
WAIT_S_MAX: Final = 60
# An assistant that leaves does not end a request that waits.
SLICE_S: Final = 1.0
# The texts of the HTTP API for an object of a path that is missing.
NOT_FOUND: Final = ("Not Found", "Object Not Found", "there is no such vhost")
# Sentences for texts of the HTTP API that do not say what to do.
LOGIN: Final = "the broker refuses the user and password in --url of `amqp-broker mcp`"
RIGHTS: Final = "the user in --url of `amqp-broker mcp` needs the tag administrator for this"
NO_LOG: Final = (
    "the vhost has no event log: call start_event_log if there is such a tool; else ask the user to start"
    " `amqp-broker mcp` with --allow event-log, or the broker with --event-log. Earlier events are not known"
)
SENTENCES: Final = {"Not_Authorized": LOGIN, "Login failed": LOGIN, "Not administrator user": RIGHTS}
QUEUE_COLUMNS: Final = (
    *("name", "vhost", "type", "state", "messages_ready", "messages_unacknowledged", "consumers", "policy"),
    *("arguments", "durable", "auto_delete", "exclusive"),
)
CONNECTION_COLUMNS: Final = (
    *("name", "user_provided_name", "vhost", "user", "state", "channels", "connected_at", "peer_host", "peer_port"),
    *("client_properties.product", "client_properties.version"),
)

KINDS: Final = ["any", *EVENTS]
Kind = Annotated[str, Field(pattern=f"^({'|'.join(KINDS)})$", json_schema_extra={"enum": [*KINDS]})]
State = Literal["ready", "unacked", "delayed"]
MessageCount = Annotated[int, Field(ge=1, le=MESSAGES_MAX)]
EventCount = Annotated[int, Field(ge=1, le=EVENTS_MAX)]
Offset = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1, lt=10**18)]
WaitS = Annotated[float, Field(ge=0, le=WAIT_S_MAX)]


class ReadingTools:
    """Tools that change nothing."""

    def __init__(self, node: str, url: str) -> None:
        self._node = node
        self._url = url

    def _ask(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, *, missing: str = "", body: Any = None
    ) -> Any:
        """Return the answer of the broker. Raise CommandError; for a missing object it names `missing`."""
        try:
            return ask(self._node, self._url, method, path, body=body, query=query)
        except CommandError as error:
            text = str(error)
            if missing and text in NOT_FOUND:
                raise CommandError(f"there is no {missing}", error.exit_code) from None
            if "has no event log" in text:
                raise CommandError(NO_LOG, error.exit_code) from None
            if text in SENTENCES:
                raise CommandError(SENTENCES[text], error.exit_code) from None
            raise

    def attention(self, vhost: str | None = None) -> dict[str, Any]:
        """List what is wrong at the broker right now, most urgent first. Start here.

        Alarms, queues that grow without a consumer, idle and slow consumers, messages that no queue received (with the
        closest binding), retry loops, dead letters, clients that come and go, fault rules that are on, a moved clock.
        Each finding has a sentence with the cause, a remedy, and the time since when it holds.
        """
        return {"findings": self._ask("GET", "/_broker/attention", {"vhost": vhost})}

    def advice(self, vhost: str | None = None) -> dict[str, Any]:
        """List habits of clients that cause trouble in production, with examples and remedies.

        Polling by basic.get is one, publishing without confirms and consuming without a prefetch limit are others.
        """
        return {"habits": self._ask("GET", "/_broker/advice-habits", {"vhost": vhost})}

    def overview(self) -> dict[str, Any]:
        """Return version, listeners, numbers of objects and messages, and vhosts of the broker."""
        found = self._ask("GET", "/api/overview")
        return {
            "broker": f"amqp-broker {__version__}",
            "behaves_like": f"RabbitMQ {found['rabbitmq_version']}",
            "node": found["node"],
            "listeners": [f"{row['protocol']} on {row['ip_address']}:{row['port']}" for row in found["listeners"]],
            "objects": found["object_totals"],
            "messages": found["queue_totals"],
            "vhosts": [row["name"] for row in self._ask("GET", "/api/vhosts", {"columns": "name"})],
        }

    def queues(self, vhost: str = "/", name: str = "") -> dict[str, Any]:
        """List queues and streams of a vhost, those with most messages first.

        `name` is a part of their names. Rows have the numbers of ready and unacknowledged messages and of consumers.
        `more` is the number of queues that are left out.
        """
        order = {"sort": "messages", "sort_reverse": "true", "page": 1, "page_size": QUEUES_MAX}
        query = {"name": name, "columns": ",".join(QUEUE_COLUMNS), **order}
        found = self._ask("GET", f"/api/queues/{quoted(vhost)}", query, missing=f"vhost '{vhost}'")
        return {"queues": found["items"], "more": found["filtered_count"] - len(found["items"])}

    def queue(self, queue: str, vhost: str = "/") -> dict[str, Any]:
        """Return a queue with its numbers, arguments and bindings, and what each consumer holds."""
        place, missing = f"{quoted(vhost)}/{quoted(queue)}", _missing_queue(queue, vhost)
        columns = ",".join((*QUEUE_COLUMNS, "message_stats", "memory"))
        row = self._ask("GET", f"/api/queues/{place}", {"columns": columns}, missing=missing)
        bindings = self._ask("GET", f"/api/queues/{place}/bindings", {"columns": "source,routing_key,arguments"})
        return {**row, "bindings": bindings, **self._ask("GET", f"/_broker/queues/{place}/consumers")}

    def connections(self, vhost: str | None = None) -> dict[str, Any]:
        """List open connections with their names, users, addresses and client libraries."""
        path = "/api/connections" if vhost is None else f"/api/vhosts/{quoted(vhost)}/connections"
        query = {"columns": ",".join(CONNECTION_COLUMNS)}
        return {"connections": self._ask("GET", path, query, missing=f"vhost '{vhost}'")}

    def topology(self, vhost: str = "/") -> dict[str, Any]:
        """Return exchanges, queues and bindings of a vhost, with dead-letter and alternate exchanges.

        There are at most 100 exchanges and 100 queues; `more_queues` is the number of queues that are left out.
        """
        report = self._ask("GET", f"/_broker/report/{quoted(vhost)}", missing=f"vhost '{vhost}'")
        names = ("exchanges", "queues", "bindings", "more_queues", "clock", "faults")
        return {name: report[name] for name in names}

    def peek(
        self,
        queue: str,
        vhost: str = "/",
        count: MessageCount = 10,
        offset: Offset = 0,
        state: State = "ready",
        search: str = "",
    ) -> dict[str, Any]:
        """Show messages of a queue without consuming them: their order and delivery counts stay as they are.

        `state` is ready, unacked (with the consumer that holds each) or delayed; `search` is a text in the body. Bodies
        are cut after 1000 octets. `next` in the answer is the offset of the next messages, or null at the end.
        """
        query = {"count": count, "offset": offset, "state": state, "search": search or None}
        path = f"/_broker/queues/{quoted(vhost)}/{quoted(queue)}/peek"
        found: dict[str, Any] = self._ask(
            "GET", path, {**query, "truncate": BODY_BYTES_MAX}, missing=_missing_queue(queue, vhost)
        )
        return found

    def why(self, queue: str, vhost: str = "/", search: str = "") -> dict[str, Any]:
        """Explain why a message is in a queue, or why not. Needs the event log of the vhost.

        `search` is a text in the message id, correlation id, routing key or body, or a message number; without it, the
        newest messages of the queue are explained. Each has sentences with the reason, and its events. Messages that
        were published before the log began, or that it has dropped (`skipped` events), are not found.
        """
        path = f"/_broker/queues/{quoted(vhost)}/{quoted(queue)}/lives"
        found = self._ask("GET", path, {"search": search}, missing=f"vhost '{vhost}'")
        if not found["has_log"]:
            raise CommandError(NO_LOG, EX_USAGE)
        rows = [{**row, "events": [line_of(_bodiless(event)) for event in row["events"]]} for row in found["messages"]]
        return {"messages": rows, "skipped": found["skipped"], "published_before": found["published_before"]}

    def message(self, number: Number) -> dict[str, Any]:
        """List all events of a message by its number, and of the dead letters that it became. Needs the event log."""
        if not self._ask("GET", "/_broker/event-log"):
            raise CommandError(NO_LOG, EX_USAGE)
        found = self._ask("GET", f"/_broker/messages/{number}")
        return {**found, "events": [line_of(event) for event in found["events"][:EVENTS_MAX]]}

    async def events(
        self,
        vhost: str = "/",
        event: Kind = "any",
        queue: str | None = None,
        exchange: str | None = None,
        routing_key: str | None = None,
        body_regex: str | None = None,
        since: Offset = 0,
        count: EventCount | None = None,
        wait_s: WaitS = 0.0,
    ) -> dict[str, Any]:
        """List the newest events of messages in the event log, in their order, or wait for events.

        Without `count`, these are the newest 200 that match, and `older` is the number of those before them. With
        `count`, the call waits up to `wait_s` seconds for that number of matching events, and fails with those that
        came closest. `since` is the `next` of an earlier answer: only later events match.
        """
        if wait_s and count is None:
            raise CommandError("wait_s needs count, the number of events to wait for", EX_USAGE)
        criteria = {"vhost": vhost, "event": event, "queue": queue, "exchange": exchange, "routing_key": routing_key}
        query = {**criteria, "body_regex": body_regex, "truncate": BODY_BYTES_MAX, "since": since}
        if count is None:
            return await to_thread.run_sync(self._newest, query)
        deadline = time.monotonic() + wait_s
        while True:
            left = max(0.0, deadline - time.monotonic())
            waiting = {**query, "count": count, "limit": count, "timeout_s": min(left, SLICE_S)}
            try:
                found = await to_thread.run_sync(self._ask, "GET", "/_broker/messages", waiting)
            except NotMet:
                if left <= SLICE_S:
                    raise
                continue
            return {**found, "messages": [line_of(row) for row in found["messages"]]}

    def _newest(self, query: dict[str, Any]) -> dict[str, Any]:
        """Return the newest events of the log, which answers from the oldest one on."""
        newest: deque[dict[str, Any]] = deque(maxlen=EVENTS_MAX)
        since, total = query["since"], 0
        while True:
            found = self._ask("GET", "/_broker/messages", {**query, "since": since, "limit": PAGE})
            newest += found["messages"]
            total += len(found["messages"])
            since = found["next"]
            if found["count"] == len(found["messages"]):
                lines = [line_of(row) for row in newest]
                return {"messages": lines, "older": total - len(lines), "next": since, "skipped": found["skipped"]}

    def fault_rules(self) -> dict[str, Any]:
        """List the fault rules that are on, each with the counts of its matches and hits."""
        return {"rules": self._ask("GET", "/_broker/faults")}

    def clock(self) -> dict[str, Any]:
        """Return the time of the broker's clock, the real time, and whether the clock is frozen."""
        found: dict[str, Any] = self._ask("GET", "/_broker/clock")
        return found


class FaultTools(ReadingTools):
    """Tools that make the broker misbehave."""

    def fault_actions(self) -> dict[str, Any]:
        """List the actions of fault rules, with their moments (`on`), fields to select by, and parameters."""
        return {"actions": self._ask("GET", "/_broker/fault-actions")}

    def add_fault(self, action: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """Add a fault rule, such as confirm_nack with {"routing_key": "orders", "times": 1}; it is on at once.

        `fault_actions` lists actions and fields. A vhost limits a rule to the clients of that vhost, and `times` to a
        number of hits.
        """
        if "action" in (fields or {}):
            raise CommandError("the action is a parameter, and not one of the fields", EX_USAGE)
        found: dict[str, Any] = self._ask("POST", "/_broker/faults", body={**(fields or {}), "action": action})
        return found

    def remove_fault(self, id: int) -> dict[str, Any]:
        """Remove a fault rule by its id, with the rules that follow it in a sequence, and end their effects."""
        self._ask("DELETE", f"/_broker/faults/{id}", missing=f"fault rule {id}")
        return self.fault_rules()


class ClockTools(ReadingTools):
    """Tools that move the clock."""

    def advance_clock(self, duration: str) -> dict[str, Any]:
        """Let time pass at once, such as "30m": all that is due meanwhile happens, in order. It cannot be undone."""
        found: dict[str, Any] = self._ask("POST", "/_broker/clock/advance", body={"duration": duration})
        return found

    def freeze_clock(self) -> dict[str, Any]:
        """Stop the clock: nothing expires by itself until it is resumed."""
        found: dict[str, Any] = self._ask("POST", "/_broker/clock/freeze")
        return found

    def resume_clock(self) -> dict[str, Any]:
        """Let the clock run again from its current time."""
        found: dict[str, Any] = self._ask("POST", "/_broker/clock/resume")
        return found


class EventLogTools(ReadingTools):
    """A tool that makes the broker remember more."""

    def start_event_log(self, vhost: str = "/") -> dict[str, Any]:
        """Log the events of a vhost from now on, for `events`, `message` and `why`; it takes up to 64 MiB of memory."""
        self._ask("PUT", f"/_broker/event-log/{quoted(vhost)}", missing=f"vhost '{vhost}'", body={})
        return {"logs": self._ask("GET", "/_broker/event-log")}


def quoted(name: str) -> str:
    """Return a name as a part of a path. Raise CommandError for one that would lead elsewhere."""
    if name in ("", ".", ".."):
        raise CommandError(f"'{name}' cannot be asked for: it stands for another place in an address", EX_USAGE)
    return quote(name, safe="")


def _bodiless(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without its body, which the API leaves out of lives: a line would show an empty one."""
    return {name: value for name, value in event.items() if name != "payload"}


def _missing_queue(queue: str, vhost: str) -> str:
    return f"queue '{queue}' in vhost '{vhost}', or no such vhost"
