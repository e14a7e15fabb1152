"""Plays a program of HTTP requests at two brokers, and finds the first answer that differs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import uuid4

from compat.duel.http_allowed import is_allowed, reason_of
from compat.duel.http_steps import Step
from compat.management.http_asking import Api, Ask, Reply

EVERYTHING: Final = {"configure": ".*", "write": ".*", "read": ".*"}
# The lists that are read in the end, with the field that names the owner, and those that are compared. RabbitMQ applies
# policies to queues a moment later.
LISTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "vhosts": ("name", ("name", "description", "tags", "default_queue_type", "tracing")),
    "users": ("name", ("name", "tags", "limits")),
    "permissions": ("vhost", ("user", "vhost", "configure", "write", "read")),
    "topic-permissions": ("vhost", ("user", "vhost", "exchange", "write", "read")),
    "global-parameters": ("name", ("name", "value")),
    "parameters": ("vhost", ("component", "name", "value", "vhost")),
    "policies": ("vhost", ("name", "vhost", "pattern", "definition", "priority", "apply-to")),
    "operator-policies": ("vhost", ("name", "vhost", "pattern", "definition", "priority", "apply-to")),
    "vhost-limits": ("vhost", ("vhost", "value")),
    "user-limits": ("user", ("user", "value")),
    "queues": ("vhost", ("name", "vhost", "durable", "auto_delete", "arguments")),
    "exchanges": ("vhost", ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")),
    "bindings": ("vhost", ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")),
}
SHOWN_MAX: Final = 1500
# A request at which RabbitMQ crashes is answered with 500, or with the stack of its process.
_STACK: Final = re.compile(r"\[\{file|function_clause|case_clause|badmatch|badarg|badmap|badkey|undef")


class Finding(NamedTuple):
    """A program with the two answers that differ; `kind` says in what."""

    kind: str
    program: list[Step]
    difference: str

    def __str__(self) -> str:
        return "\n".join([*(f"  {step.title}" for step in self.program), self.difference, f"  ({self.kind})", ""])


class HttpJudge:
    """Two brokers that play the same programs."""

    def __init__(self, oracle: Api, ours: Api, profile: str) -> None:
        self.oracle, self.ours, self.profile = oracle, ours, profile
        self.counts = Counter[str]()
        # RabbitMQ traces a vhost again that has the name of a former one.
        self._run = uuid4().hex[:8]
        # hypothesis plays a program several times, and wants the same answer each time.
        self._judged: dict[str, Finding | None] = {}

    def judge(self, program: list[Step]) -> Finding | None:
        """Return the first difference that may not be, and shows again."""
        key = repr(program)
        if key not in self._judged:
            self._judged[key] = self._judge(program)
        return self._judged[key]

    def _judge(self, program: list[Step]) -> Finding | None:
        finding = self._play(program)
        if finding is None:
            return None
        again = self._play(program)
        if again is None or again.kind != finding.kind:
            self.counts["unstable"] += 1
            return None
        return finding

    def _play(self, program: list[Step]) -> Finding | None:
        self.counts["programs"] += 1
        name = f"duel{self._run}-{self.counts['programs']}x"
        for api in (self.oracle, self.ours):
            for ask in (
                Ask("PUT", f"vhosts/{name}"),
                Ask("PUT", f"permissions/{name}/guest", EVERYTHING),
                Ask("PUT", f"users/{name}-user", {"password": f"{name}-user", "tags": "management"}),
            ):
                assert api.ask(ask).status < 300
        try:
            return next((Finding(*found) for found in self._differences(program, name)), None)
        finally:
            for api in (self.oracle, self.ours):
                _clean(api, name)

    def _differences(self, program: list[Step], name: str) -> Iterator[tuple[str, list[Step], str]]:
        for step in program:
            filled = step.filled(name)
            theirs, mine = (api.ask(filled.ask, **filled.headers) for api in (self.oracle, self.ours))
            self.counts["requests"] += 1
            if mine.status >= 500:
                yield self._found(program, step, theirs, mine)
            if _has_crashed(theirs):
                self.counts["crashes of RabbitMQ"] += 1
                return
            if _shown(theirs, step, name) != _shown(mine, step, name):
                if not is_allowed(step, theirs, mine, self.profile):
                    yield self._found(program, step, theirs, mine)
                self.counts["allowed"] += 1
                if theirs.status < 400 or mine.status < 400:
                    return
            if theirs.status >= 400 and step.is_import:
                # RabbitMQ has declared what comes before the error; a refused import changes nothing here.
                return
        for kind, (owner, fields) in LISTS.items():
            theirs, mine = (api.ask(Ask("GET", kind)) for api in (self.oracle, self.ours))
            if theirs.status >= 500:
                self.counts["crashes of RabbitMQ"] += 1
                return
            # RabbitMQ 3.10 ignores default types of queues, which came with 3.11.
            compared = tuple(key for key in fields if self.profile != "3.13" or key != "default_queue_type")
            shown = [_owned(reply.value, name, owner, compared) for reply in (theirs, mine)]
            if shown[0] != shown[1]:
                first, second = (json.dumps(items, ensure_ascii=False)[:SHOWN_MAX] for items in shown)
                difference = f"GET {kind}\n  RabbitMQ {first}\n  here     {second}"
                yield f"GET {kind} {_keys(*shown)}", program, difference

    def _found(self, program: list[Step], step: Step, theirs: Reply, mine: Reply) -> tuple[str, list[Step], str]:
        words = re.sub(r"[\"'<].*?[\"'>]|\d+|duel\w*", "", f"{reason_of(theirs)[:60]}/{reason_of(mine)[:60]}")
        kind = f"{step.ask.method} {step.path.partition('/')[0]} {theirs.status}/{mine.status} {words}"
        return kind, program, f"{step.title}\n  RabbitMQ {_text(theirs)}\n  here     {_text(mine)}"


def _clean(api: Api, name: str) -> None:
    """Remove the vhosts, users and parameters of a program."""
    for kind in ("vhosts", "users", "global-parameters"):
        found = api.ask(Ask("GET", kind)).value
        for item in found if isinstance(found, list) else ():
            if str(item["name"]).startswith(name):
                api.ask(Ask("DELETE", f"{kind}/{item['name']}"))


def _has_crashed(reply: Reply) -> bool:
    return reply.status >= 500 or bool(_STACK.search(reason_of(reply)))


def _keys(theirs: list[Any], mine: list[Any]) -> str:
    """Return the fields in which the first different items differ."""
    if len(theirs) != len(mine):
        return f"{len(theirs)}/{len(mine)}"
    first, second = next(pair for pair in zip(theirs, mine, strict=True) if pair[0] != pair[1])
    return ",".join(sorted(key for key in first if first[key] != second.get(key)))


def _text(reply: Reply) -> str:
    return f"{reply.status} {json.dumps(reply.value, ensure_ascii=False)[:SHOWN_MAX]}"


def _shown(reply: Reply, step: Step, name: str) -> Any:
    """Return what is compared of an answer."""
    if reply.status >= 400:
        return reply.status, reason_of(reply)
    return reply.status, comparable(reply.value)


def _owned(value: Any, name: str, owner: str, fields: tuple[str, ...]) -> list[Any]:
    """Return the objects of a program in a list, with some of their fields."""
    items = [item for item in value if str(item.get(owner)).startswith(name)]
    shown = [{key: _without_classic(item.get(key)) for key in fields} for item in items]
    for item in shown:
        if "description" in item and item["description"] is None:
            # RabbitMQ keeps null as the description of a vhost; clients with types expect a text.
            item["description"] = ""
        if item.get("default_queue_type") == "undefined":
            # RabbitMQ 3.10 has no default.
            item["default_queue_type"] = "classic"
    return sorted(shown, key=lambda item: json.dumps(item, sort_keys=True))


def comparable(value: Any) -> Any:
    """Return an answer without orders, and without the usual type of a queue."""
    if isinstance(value, list):
        return sorted((comparable(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, dict):
        left_out = {"type", "properties_key"}
        return {key: comparable(_without_classic(item)) for key, item in value.items() if key not in left_out}
    return value


def _without_classic(value: Any) -> Any:
    """Return arguments without the type classic, which only newer versions name."""
    if isinstance(value, dict) and value.get("x-queue-type") == "classic":
        return {key: item for key, item in value.items() if key != "x-queue-type"}
    return value
