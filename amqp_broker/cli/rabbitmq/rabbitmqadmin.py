"""`rabbitmqadmin`: a command line for the HTTP API of this broker, or of RabbitMQ.

It takes what v1 takes (`declare queue name=q durable=true`), and the same in the words of v2 (`declare queue --name q`,
`queues declare --name q`). One table of objects states what can be declared, deleted and listed.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

from amqp_broker.cli.rabbitmq.admin_help import Verb, completion, help_text, subcommands
from amqp_broker.cli.rabbitmq.admin_objects import CHECKS, JSON_FIELDS, NOUNS, OBJECTS, TRUTH_FIELDS, Listed, Object
from amqp_broker.cli.rabbitmq.admin_options import OPTIONS, Line, from_file, from_uri, tls_of, understand
from amqp_broker.cli.rabbitmq.admin_tables import FORMATS, print_list
from amqp_broker.cli.rabbitmq.words import Misuse, is_number, path_of
from amqp_broker.cli.shared.http_api import Answered, Api, Place, Unreachable
from amqp_broker.cli.shared.standard_streams import finish_output, not_text, read_input

EX_FAILED = 1
TRUE = ("true", "1", "yes")
FALSE = ("false", "0", "no")


class RequestRefused(Exception):
    """The broker refused the request."""


def main(words: list[str]) -> int:
    """Run the tool, and return its exit code."""
    return finish_output(_main(words))


def _main(words: list[str]) -> int:
    try:
        if word := not_text(words):
            raise Misuse(f"{word} is not text in UTF-8")
        line = understand(words, VERBS)
        Admin(line).run()
    except Misuse as error:
        print(f"\nERROR: {error}\n\nrabbitmqadmin --help for help\n", file=sys.stderr)
        return EX_FAILED
    except (RequestRefused, Unreachable, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return 0
        print(f"*** {error}\n", file=sys.stderr)
        return EX_FAILED
    return 0


class Admin:
    """One run of the tool: its options with those of the configuration file, and the API."""

    def __init__(self, line: Line) -> None:
        self.words, self.given = line.words, dict(line.given)
        self.options = {**DEFAULTS, **from_file(line.options), **line.options}
        if "base_uri" in self.options:
            self.options.update(from_uri(self.options["base_uri"]))

    @property
    def is_quiet(self) -> bool:
        return "quiet" in self.options

    def print(self, text: str) -> None:
        if not self.is_quiet:
            print(text)

    def run(self) -> None:
        """Run the command. Raises Misuse, RequestRefused and Unreachable."""
        if "version" in self.options:
            from amqp_broker.settings.profiles import DEFAULT, PROFILES

            print(f"rabbitmqadmin {PROFILES[DEFAULT].version}")
            return
        if "bash_completion" in self.options:
            print(completion(VERBS))
            return
        if "help" in self.options:
            self.do_help()
            return
        if not self.words:
            raise Misuse("Action not specified")
        verb = VERBS.get(self.words[0].replace("-", "_"))
        if verb is None:
            raise Misuse(f"Action {self.words[0]} not understood")
        verb.run(self)

    def number(self, name: str) -> float:
        """Return the number in an option. Raises Misuse."""
        text = self.options[name]
        if not is_number(text):
            raise Misuse(f"--{name.replace('_', '-')} is '{text}', which is not a number")
        return float(text)

    def ask(self, method: str, path: str, body: Any = None) -> Answered:
        """Return the answer of the API. Raises RequestRefused and Unreachable."""
        options = self.options
        login = f"{options['username']}:{options['password']}".encode()
        place = Place(
            host=options["host"],
            port=int(self.number("port")),
            authorization="Basic " + base64.b64encode(login).decode(),
            tls=tls_of(options) if "ssl" in options else None,
        )
        target = f"{options.get('path_prefix', '')}/api{path}"
        try:
            answer = Api(place, self.number("request_timeout")).ask(method, target, body)
        except Unreachable as error:
            host = f"[{place.host}]" if ":" in place.host else place.host
            scheme = "https" if place.tls else "http"
            raise Unreachable(f"Could not connect to {scheme}://{host}:{place.port}: {error}") from None
        if answer.status == 401:
            raise RequestRefused(f"Access refused: {target}")
        if answer.status == 404:
            if "idempotently" in self.given:
                return answer
            raise RequestRefused(f"Not found: {target}")
        if not answer.is_ok:
            raise RequestRefused(answer.reason)
        return answer

    # Commands

    def do_help(self) -> None:
        topic = self.words[1:2] if self.words[:1] == ["help"] else []
        print(subcommands() if topic == ["subcommands"] else help_text(VERBS), end="")

    def do_list(self) -> None:
        noun = self.words[1] if len(self.words) > 1 else ""
        kind = OBJECTS[NOUNS[noun]].listed if noun in NOUNS else None
        if kind is None:
            raise Misuse(f"Don't know how to list {noun}")
        path = kind.path
        if kind.has_vhost and "vhost" in self.options:
            path += "/" + path_of(self.options["vhost"])
        self.print_answer(path, kind, self.words[2:])

    def do_show(self) -> None:
        if self.words[1:2] != ["overview"]:
            raise Misuse(f"Don't know how to show {' '.join(self.words[1:])}")
        columns = ("rabbitmq_version", "cluster_name", "queue_totals.messages", "object_totals.queues")
        self.print_answer("/overview", Listed("/overview", columns=columns), self.words[2:])

    def print_answer(self, path: str, kind: Listed, columns: list[str]) -> None:
        options = self.options
        if options["format"] not in FORMATS:
            raise Misuse(f"Format {options['format']} not recognised")
        if not columns and options["depth"] == "1" and "json" not in options["format"]:
            columns = list(kind.columns)
        query = [f"columns={','.join(map(path_of, columns))}"] if columns else []
        if "sort" in options:
            query.append(f"sort={path_of(options['sort'])}")
        if "sort_reverse" in options:
            query.append("sort_reverse=true")
        value = self.ask("GET", path + ("?" + "&".join(query) if query else "")).value
        items = value if isinstance(value, list) else [value]
        print_list(items, columns, options["format"], int(self.number("depth")), kind.json_fields, self.is_quiet)

    def object_of(self) -> tuple[str, Object]:
        if len(self.words) < 2:
            raise Misuse("Type not specified")
        noun = self.words[1]
        if noun not in NOUNS:
            raise Misuse(f"Type {noun} not recognised")
        if len(self.words) > 2:
            raise Misuse(f'Argument "{self.words[2]}" not in the name=value format')
        return NOUNS[noun], OBJECTS[NOUNS[noun]]

    def values(self, needed: tuple[str, ...], optional: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given fields, converted, and defaults for others. Raises Misuse."""
        names = {name for names in needed for name in names.split("|")}
        values = {name: value for name, value in optional.items() if value is not None}
        for name, text in self.given.items():
            if name == "idempotently":
                continue
            name = {"apply_to": "apply-to", "queue_type": "type"}.get(name, name)
            if name not in names and name not in optional and name != "vhost":
                raise Misuse(f'Argument "{name}" is not recognised')
            values[name] = understood(name, text)
        for choice in needed:
            if not set(choice.split("|")) & set(values):
                raise Misuse(f'mandatory argument "{choice}" is required')
        values.setdefault("vhost", self.options.get("vhost", "/"))
        return values

    def do_declare(self) -> None:
        kind, thing = self.object_of()
        if not thing.path:
            raise Misuse(f"Don't know how to declare {kind}")
        values = self.values(thing.needed, thing.optional)
        if kind == "queue" and "type" in values:
            values["arguments"] = {**values.get("arguments", {}), "x-queue-type": values.pop("type")}
        self.ask("POST" if kind == "binding" else "PUT", filled(thing.path, values), values)
        self.print(f"{kind} declared")

    def do_delete(self) -> None:
        kind, thing = self.object_of()
        if not thing.named_by:
            raise Misuse(f"Don't know how to delete {kind}")
        optional: dict[str, Any] = {"properties_key": "~", "routing_key": None} if kind == "binding" else {}
        values = self.values(thing.named_by, optional)
        if "routing_key" in values and "properties_key" not in self.given:
            values["properties_key"] = values["routing_key"]
        self.ask("DELETE", filled(thing.delete_path or thing.path, values))
        self.print(f"{kind} deleted")

    def do_close(self) -> None:
        self.object_of()
        self.ask("DELETE", filled("/connections/{name}", self.values(("name",), {})))
        self.print("connection closed")

    def do_purge(self) -> None:
        self.object_of()
        self.ask("DELETE", filled("/queues/{vhost}/{name}/contents", self.values(("name",), {})))
        self.print("queue purged")

    def do_publish(self) -> None:
        optional: dict[str, Any] = {
            "payload": None,
            "properties": {},
            "exchange": "amq.default",
            "payload_encoding": "string",
        }
        values = self.values(("routing_key",), optional)
        if "payload" not in values:
            values["payload"] = base64.b64encode(read_input()).decode()
            values["payload_encoding"] = "base64"
        answer = self.ask("POST", filled("/exchanges/{vhost}/{exchange}/publish", values), values)
        self.print("Message published" if answer.value["routed"] else "Message published but NOT routed")

    def do_get(self) -> None:
        optional: dict[str, Any] = {
            "count": "1",
            "ackmode": "ack_requeue_true",
            "payload_file": None,
            "encoding": "auto",
        }
        values = self.values(("queue",), {**optional, "ack_mode": None})
        values["ackmode"] = values.pop("ack_mode", values["ackmode"])
        path, file = filled("/queues/{vhost}/{queue}/get", values), values.pop("payload_file", None)
        if file and values["count"] != "1":
            raise Misuse("Cannot get multiple messages using payload_file")
        items = self.ask("POST", path, values).value
        columns: list[str] = []
        if file and items:
            payload: str = items[0]["payload"]
            is_base64 = items[0]["payload_encoding"] == "base64"
            octets = base64.b64decode(payload) if is_base64 else payload.encode()
            with open(file, "wb") as written:  # noqa: PTH123
                written.write(octets)
            columns = ["routing_key", "exchange", "message_count", "payload_bytes", "redelivered"]
        print_list(items, columns, self.options["format"], int(self.number("depth")), (), self.is_quiet)

    def file(self) -> str:
        """Return the file of an export or import."""
        words = self.words[1:] or [self.given[name] for name in ("file",) if name in self.given]
        if len(words) != 1:
            raise Misuse("Exactly one argument required")
        return words[0]

    def definitions_path(self) -> str:
        return "/definitions" + (f"/{path_of(self.options['vhost'])}" if "vhost" in self.options else "")

    def do_export(self) -> None:
        file, value = self.file(), self.ask("GET", self.definitions_path()).value
        with open(file, "w", encoding="utf-8") as written:  # noqa: PTH123
            json.dump(value, written, ensure_ascii=False)
        self.print(f'Exported definitions for {self.options["host"]} to "{file}"')

    def do_import(self) -> None:
        file = self.file()
        with open(file, "rb") as read:  # noqa: PTH123
            self.ask("POST", self.definitions_path(), read.read())
        self.print(
            f'Uploaded definitions from "{file}" to {self.options["host"]}. The import process may take some time. '
            "Consult server logs to track progress."
        )

    def do_health_check(self) -> None:
        name = (self.words[1] if len(self.words) > 1 else "").replace("-", "_")
        if name not in CHECKS:
            raise Misuse(f"health check must be one of {', '.join(CHECKS)}")
        try:
            self.ask("GET", filled(CHECKS[name], {"port": "5672", "protocol": "amqp", **self.given}))
        except RequestRefused as refusal:
            raise RequestRefused(f"health check failed: {refusal}") from None
        self.print("health check passed")

    def do_rebalance(self) -> None:
        self.ask("POST", "/rebalance/queues")

    def do_feature_flags(self) -> None:
        if self.words[1:2] == ["list"]:
            self.print_answer("/feature-flags", Listed("/feature-flags", columns=("name", "state")), [])
            return
        found = [flag["name"] for flag in self.ask("GET", "/feature-flags").value]
        wanted = found if self.words[1:2] == ["enable_all"] else [self.given.get("name", "")]
        for name in wanted:
            self.ask("PUT", f"/feature-flags/{path_of(name)}/enable", {"name": name})


def understood(name: str, text: str) -> Any:
    """Return a field for the API. Raises Misuse."""
    if name in JSON_FIELDS:
        try:
            return json.loads(text)
        except ValueError:
            raise Misuse(f"Could not parse JSON:\n  {text}") from None
    if name in TRUTH_FIELDS:
        if text.lower() not in (*TRUE, *FALSE):
            raise Misuse(f"{name} is '{text}', which is neither true nor false")
        return text.lower() in TRUE
    return text


def filled(path: str, values: Mapping[str, Any]) -> str:
    """Return a path with quoted values."""
    quoted = {name: path_of(str(value)) for name, value in values.items()}
    quoted["destination_char"] = str(values.get("destination_type", "queue"))[:1]
    return path.format(**quoted)


VERBS: Mapping[str, Verb] = {
    "list": Verb(
        Admin.do_list,
        "KIND [COLUMN...]",
        " ".join(sorted(noun for noun, kind in NOUNS.items() if noun != kind and OBJECTS[kind].listed)),
    ),
    "show": Verb(Admin.do_show, "overview [COLUMN...]"),
    "declare": Verb(
        Admin.do_declare, "KIND NAME=VALUE...", " ".join(kind for kind, thing in OBJECTS.items() if thing.path)
    ),
    "delete": Verb(
        Admin.do_delete, "KIND NAME=VALUE...", " ".join(kind for kind, thing in OBJECTS.items() if thing.named_by)
    ),
    "close": Verb(Admin.do_close, "connection name=..."),
    "purge": Verb(Admin.do_purge, "queue name=..."),
    "publish": Verb(Admin.do_publish, "routing_key=... [exchange=... payload=... properties=... payload_encoding=...]"),
    "get": Verb(Admin.do_get, "queue=... [count=... ackmode=... encoding=... payload_file=...]"),
    "export": Verb(Admin.do_export, "FILE"),
    "import": Verb(Admin.do_import, "FILE"),
    "health_check": Verb(Admin.do_health_check, " | ".join(CHECKS)),
    "rebalance": Verb(Admin.do_rebalance),
    "feature_flags": Verb(Admin.do_feature_flags, "list | enable_all | enable name=..."),
    "help": Verb(Admin.do_help),
}
DEFAULTS = {option.key: option.default for option in OPTIONS if option.default}
