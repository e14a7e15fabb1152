"""Importing definitions: a document is read and checked as a whole, then declared object by object.

An invalid document changes nothing. An error that only the declaration of an object shows (wrong arguments, a limit)
ends the import; as in RabbitMQ, objects declared before stay.
Source: rabbit_definitions.erl; RabbitMQ, "Schema Definition Export and Import".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AMQPError, DoesNotExist, InvalidParameter, PreconditionFailed
from amqp_broker.broker import runtime_parameters
from amqp_broker.broker.admin.access import Permission, TopicPermission, decode_hash
from amqp_broker.broker.admin.limits import MAX_QUEUES, user_limits
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.admin.policies import POLICY_VALUES, Policy, check
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.exchanges.types import exchange_type
from amqp_broker.broker.queues import arguments
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.queues.types import NOT_PERMITTED, check_shape, deprecated_feature, with_default_type
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.management.documents.definition import (
    DefinitionsError,
    Entry,
    hashing_algorithm,
    sentence_of,
    short_type,
    title_of,
)
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.documents.values import SHORTSTR_BYTES_MAX

# Sections in RabbitMQ's order of import, and the name of one object.
SECTIONS: Final = {
    "users": "user",
    "vhosts": "vhost",
    "permissions": "permission",
    "exchanges": "exchange",
    "topic_permissions": "topic permission",
    "global_parameters": "global parameter",
    "policies": "policy",
    "parameters": "parameter",
    "queues": "queue",
    "bindings": "binding",
}
# Sections of a document for one vhost.
VHOST_SECTIONS: Final = ("exchanges", "parameters", "policies", "queues", "bindings")
# Prefix of global parameters that belong to one broker and are not exported.
INTERNAL: Final = "internal"
RESERVED: Final = "amq."
# Values that mean no default queue type.
NO_QUEUE_TYPE: Final = (None, "", "undefined", "null", "nil")

Action: TypeAlias = Callable[[], object]


def import_(broker: Broker, document: Any, vhost: str | None = None, actor: str | None = None) -> list[str]:
    """Declare the objects in a document; existing objects stay. `Import` does the same step by step.

    Return a sentence for each skipped object. Raise DefinitionsError, or DoesNotExist for an unknown vhost.
    """
    return finished(importing(broker, document, vhost, actor))


def importing(broker: Broker, document: Any, vhost: str | None = None, actor: str | None = None) -> Steps[list[str]]:
    """Do `import_` in steps."""
    work = Import(broker, document, vhost, actor, reads=False)
    yield from work.reading()
    for _ in work.run():
        yield
    return work.notes


class Import:
    """Checked definitions that are ready to be declared. Raises DefinitionsError for invalid ones.

    `steps` is the number of declarations, `notes` contains a sentence for each skipped object. `refused` has vhost,
    name and fault of the queues that are skipped because this version does not permit what they use.
    """

    def __init__(
        self, broker: Broker, document: Any, vhost: str | None = None, actor: str | None = None, *, reads: bool = True
    ) -> None:
        """With an existing `vhost`, all objects are declared there.

        `actor` is the name of the importing user, who gets all permissions in new vhosts. Without `reads` the caller
        runs `reading` before anything else.
        """
        if not isinstance(document, dict):
            raise DefinitionsError(f"definitions should be an object, actually were {fields.json_term(document)[:60]}")
        self.broker = broker
        self.notes: list[str] = []
        self.refused: dict[tuple[str, str], str] = {}
        self._document = document
        self._vhost, self._actor = vhost, actor
        self._actions: deque[tuple[str, Action]] = deque()
        self.steps = 0
        # State after the import: users, and vhosts with their default queue types and limits of queues.
        self._users = set(broker.users)
        self._types = {name: vhost.default_queue_type for name, vhost in broker.vhosts.items()}
        self._queue_limits = {name: vhost.limits[MAX_QUEUES] for name, vhost in broker.vhosts.items()}
        self._new_queues: dict[str, set[str]] = {}
        self._new_exchanges: dict[str, set[str]] = {}
        if vhost is not None:
            broker.vhost(vhost)
        if reads:
            finished(self.reading())

    def reading(self) -> Steps[None]:
        """Read and check the document in steps; disposable sections are empty then. Raise DefinitionsError."""
        # Local on purpose: bound methods kept on `self` make a reference cycle.
        readers: dict[str, Callable[[Entry], None]] = {
            "users": self._read_user,
            "vhosts": self._read_vhost,
            "permissions": self._read_permission,
            "exchanges": self._read_exchange,
            "topic_permissions": self._read_topic_permission,
            "global_parameters": self._read_global_parameter,
            "policies": self._read_policy,
            "parameters": self._read_parameter,
            "queues": self._read_queue,
            "bindings": self._read_binding,
        }
        for section, kind in SECTIONS.items():
            if self._vhost is None or section in VHOST_SECTIONS:
                yield from self._read_section(section, kind, readers[section])
        self._check_queue_limits()

    def run(self) -> Iterator[int]:
        """Declare one object after the other, and yield their number so far, in steps. Raise DefinitionsError."""
        # Taken out one by one: the actions are bound methods, which make a reference cycle.
        for done in range(1, self.steps + 1):
            title, action = self._actions.popleft()
            try:
                steps = action()
                if isinstance(steps, Generator):
                    for _ in steps:
                        yield done - 1
            except (AMQPError, InvalidParameter, DoesNotExist) as error:
                self._refuse(DefinitionsError(sentence_of(title, error)))
            yield done

    def _refuse(self, error: DefinitionsError) -> None:
        """End the import; checking goes on with the next object."""
        raise error from None

    # Reading

    def _read_section(self, section: str, kind: str, read: Callable[[Entry], None]) -> Steps[None]:
        found = self._document.get(section) or []
        if not isinstance(found, list):
            raise DefinitionsError(f"{section} should be an array, actually was {fields.json_term(found)[:60]}")
        for number, values in enumerate(found.taken() if isinstance(found, Disposable) else found, 1):
            title = title_of(kind, number, values, self._vhost)
            try:
                read(Entry(title, values))
            except DefinitionsError as error:
                self._refuse(error)
            except (AMQPError, InvalidParameter) as error:
                self._refuse(DefinitionsError(sentence_of(title, error)))
            yield

    def _do(self, entry: Entry, action: Action) -> None:
        self._actions.append((entry.title, action))
        self.steps += 1

    def _vhost_of(self, entry: Entry) -> str:
        """Return the vhost of an object, which exists or is declared before it. Raise DefinitionsError."""
        if self._vhost is not None:
            return self._vhost
        if entry.values.get("vhost") is None:
            raise DefinitionsError(
                f"{entry.title}: Virtual host does not exist and is not specified in definitions file"
            )
        name = entry.text("vhost")
        if name not in self._types:
            raise DefinitionsError(f'{entry.title}: Please create virtual host "{name}" prior to importing definitions')
        return name

    def _user_of(self, entry: Entry) -> str:
        name = entry.text("user")
        if name not in self._users:
            raise DefinitionsError(f"{entry.title}: User '{name}' does not exist")
        return name

    def _read_user(self, entry: Entry) -> None:
        name, values = entry.text("name"), entry.values
        if "tags" not in values and "administrator" not in values:
            raise DefinitionsError(f"{entry.title} has no tags (tags_not_present)")
        tags = entry.tags() if "tags" in values else ["administrator"] * (values["administrator"] in (True, "true"))
        algorithm = hashing_algorithm(entry, self._document, self.broker.users.hashing_algorithm)
        if "password" in values and "password_hash" in values:
            raise DefinitionsError(f"{entry.title}: both_password_and_password_hash_are_provided")
        if "password" in values:
            password, algorithm = entry.text("password"), self.broker.users.hashing_algorithm
            password_hash = self.broker.users.hash(password.encode()) if password else b""
        else:
            password_hash = decode_hash(entry.text("password_hash", ""), algorithm)
        limits = entry.given_object("limits") if "limits" in values else None
        if limits is not None:
            user_limits().replace(limits)
        self._users.add(name)
        self._do(entry, partial(self._put_user, name, password_hash, algorithm, tags, limits))

    def _put_user(
        self, name: str, password_hash: bytes, algorithm: str, tags: list[str], limits: dict[str, Any] | None
    ) -> None:
        user = self.broker.users.put(name, password_hash, algorithm, tags)
        if limits is not None and limits != user.limits.given:
            self.broker.users.set_limits(user, limits)

    def _read_vhost(self, entry: Entry) -> None:
        name = entry.text("name")
        metadata = self._metadata(entry, name)
        metadata.check()
        tracing = entry.flag("tracing", False) if "tracing" in entry.values else None
        self._types[name] = metadata.default_queue_type or self.broker.settings.default_queue_type
        self._do(entry, partial(self._put_vhost, name, metadata, tracing))

    def _metadata(self, entry: Entry, name: str) -> Metadata:
        noted = self.broker.vhosts[name].metadata if name in self.broker.vhosts else Metadata()
        inner = entry.object("metadata")
        given = Entry(entry.title, {**inner, **entry.values})
        release = self.broker.profile.release
        if release >= (4, 3):
            given.values.update(inner)
        if release >= (4, 0):
            # Absent values are those of a new vhost, and a type beside the metadata is ignored.
            noted = Metadata(is_protected_from_deletion=noted.is_protected_from_deletion)
            given.values["default_queue_type"] = inner.get("default_queue_type")
        default_type = noted.default_queue_type
        if "default_queue_type" in given.values:
            has_type = given.values["default_queue_type"] not in NO_QUEUE_TYPE
            default_type = short_type(given.text("default_queue_type")) if has_type else None
        return Metadata(
            given.text("description") if given.values.get("description") is not None else noted.description,
            tuple(given.tags()) if given.values.get("tags") is not None else noted.tags,
            default_type,
            given.flag("protected_from_deletion", noted.is_protected_from_deletion),
        )

    def _put_vhost(self, name: str, metadata: Metadata, tracing: bool | None) -> None:
        broker, is_new = self.broker, name not in self.broker.vhosts
        vhost = broker.add_vhost(name, metadata)
        if not is_new:
            vhost.set_metadata(metadata)
        elif self._actor is not None and self._actor in broker.users:
            broker.users.set_permission(broker.users[self._actor], name, Permission())
        if tracing is not None and tracing is not vhost.tracing.is_on:
            vhost.tracing.start() if tracing else vhost.tracing.stop()

    def _read_permission(self, entry: Entry) -> None:
        user, vhost = self._user_of(entry), self._vhost_of(entry)
        permission = Permission(entry.text("configure"), entry.text("write"), entry.text("read"))
        permission.check()
        users = self.broker.users
        self._do(entry, lambda: self.broker.users.set_permission(users.named(user), vhost, permission))

    def _read_topic_permission(self, entry: Entry) -> None:
        user, vhost, exchange = self._user_of(entry), self._vhost_of(entry), entry.text("exchange")
        permission = TopicPermission(entry.text("write"), entry.text("read"))
        permission.check()
        if self.broker.profile.release >= (4, 3) and not self._has(vhost, "exchange", exchange):
            raise DefinitionsError(f"{entry.title}: there is no exchange '{exchange}'")
        users = self.broker.users
        self._do(entry, lambda: self.broker.users.set_topic_permission(users.named(user), vhost, exchange, permission))

    def _read_global_parameter(self, entry: Entry) -> None:
        name, value = entry.text("name"), entry.values.get("value")
        runtime_parameters.check_value(value)
        if not name.startswith(INTERNAL):
            self._do(entry, partial(self.broker.global_parameters.set, name, value))

    def _read_policy(self, entry: Entry) -> None:
        if entry.values.get("name") is None:
            raise DefinitionsError(f"policy in virtual host '{entry.values.get('vhost')}' has undefined name")
        vhost, name = self._vhost_of(entry), entry.text("name")
        policy = runtime_parameters.policy_of(name, entry.values)
        with self._validating(vhost, name):
            check(policy, POLICY_VALUES)
        self._do(entry, partial(self._set_policy, vhost, policy))

    def _set_policy(self, vhost: str, policy: Policy) -> Steps[None]:
        return self.broker.vhost(vhost).policies.setting(policy)

    def _read_parameter(self, entry: Entry) -> None:
        vhost, component, name = self._vhost_of(entry), entry.text("component"), entry.text("name")
        value = entry.values.get("value")
        if component == runtime_parameters.VHOST_LIMITS:
            value = entry.object("value")
        with self._validating(vhost, component, name):
            runtime_parameters.check(self.broker.components, component, name, value)
        if component == runtime_parameters.VHOST_LIMITS:
            self._queue_limits[vhost] = entry.object("value").get(MAX_QUEUES)
        self._do(entry, partial(self._set_parameter, vhost, component, name, value))

    def _set_parameter(self, vhost: str, component: str, name: str, value: Any) -> None:
        self.broker.vhost(vhost).parameters.set(component, name, value)

    def _read_exchange(self, entry: Entry) -> None:
        name = entry.name()
        if not name or name.startswith(RESERVED):
            # It is skipped wherever it is, even in a vhost that is not there.
            self._skip(entry, "an exchange", name)
            return
        vhost = self._vhost_of(entry)
        self._new_exchanges.setdefault(vhost, set()).add(name)
        exchange_type(self.broker.profile, kind := entry.text("type"))
        declaration = ExchangeDeclaration(
            name,
            kind,
            is_durable=entry.flag("durable", True),
            is_auto_delete=entry.flag("auto_delete", False),
            is_internal=entry.flag("internal", False),
            arguments=entry.table("arguments"),
        )
        self._do(entry, partial(self._declare_exchange, vhost, declaration))

    def _declare_exchange(self, vhost: str, declaration: ExchangeDeclaration) -> None:
        """Declare an exchange unless it exists."""
        there = self.broker.vhost(vhost)
        if declaration.name not in there.exchanges:
            there.declare_exchange(declaration)

    def _read_queue(self, entry: Entry) -> None:
        vhost, name = self._vhost_of(entry), entry.name()
        if name.startswith(RESERVED):
            self._skip(entry, "a queue", name)
            return
        declaration = QueueDeclaration(
            name,
            is_durable=entry.flag("durable", True),
            is_auto_delete=entry.flag("auto_delete", False),
            arguments=entry.table("arguments"),
        )
        there = self.broker.vhosts.get(vhost)
        if there is not None and name in there.queues:
            return
        resource = f"queue '{name}' in vhost '{vhost}'"
        adds_classic = self.broker.profile.adds_queue_type
        typed = with_default_type(declaration, self._types[vhost], adds_classic=adds_classic)
        arguments.check_queue(typed.arguments, self.broker.profile, resource)
        try:
            check_shape(typed, self.broker.profile, resource)
        except PreconditionFailed as error:
            self.notes.append(f"{entry.title} is skipped: {error}")
            return
        feature = deprecated_feature(typed, self.broker.profile)
        if feature:
            self.refused[vhost, name] = NOT_PERMITTED[feature]
            self.notes.append(f"{entry.title} is skipped: it {NOT_PERMITTED[feature]}, which is not permitted")
            return
        self._new_queues.setdefault(vhost, set()).add(name)
        self._do(entry, partial(self._declare_queue, vhost, declaration))

    def _declare_queue(self, vhost: str, declaration: QueueDeclaration) -> None:
        """Declare a queue unless it exists."""
        there = self.broker.vhost(vhost)
        if declaration.name not in there.queues:
            there.declare_queue(declaration)

    def _check_queue_limits(self) -> None:
        for name, added in self._new_queues.items():
            limit, vhost = self._queue_limits.get(name), self.broker.vhosts.get(name)
            count = len(vhost.queues) if vhost is not None else 0
            if limit is not None and 0 <= limit < count + len(added):
                raise DefinitionsError(
                    f'Adding {len(added)} queue(s) to virtual host "{name}" would exceed the limit of {limit} '
                    f"queue(s).\n\nThis virtual host currently has {count} queue(s) defined.\n\nImport aborted!"
                )

    def _read_binding(self, entry: Entry) -> None:
        source, destination = entry.name("source"), entry.name("destination")
        if self._is_lost(entry):
            self.notes.append(f"{entry.title} is skipped, since there is no such virtual host")
            return
        vhost = self._vhost_of(entry)
        kind = entry.text("destination_type")
        # RabbitMQ makes a binding with null as its key, which a fanout exchange does not look at.
        key = entry.text("routing_key", "") if entry.values.get("routing_key") is not None else ""
        if kind not in ("queue", "exchange"):
            raise DefinitionsError(f"destination_type of {entry.title} is neither queue nor exchange")
        if len(key.encode()) > SHORTSTR_BYTES_MAX:
            raise DefinitionsError(f"routing_key of {entry.title} is longer than {SHORTSTR_BYTES_MAX} octets")
        table = entry.table("arguments")
        if self.broker.profile.release >= (4, 0):
            self._check_ends(entry, vhost, source, kind, destination)
        # Each queue has its binding of the default exchange.
        if source:
            self._do(entry, partial(self._bind, entry.title, vhost, source, kind, destination, key, table))

    def _is_lost(self, entry: Entry) -> bool:
        """Return whether a binding names a vhost that is not there, and this version skips it."""
        vhost = entry.values.get("vhost") if self._vhost is None else self._vhost
        return self.broker.profile.release < (4, 0) and isinstance(vhost, str) and vhost not in self._types

    def _check_ends(self, entry: Entry, vhost: str, source: str, kind: str, destination: str) -> None:
        """Raise DefinitionsError if an end neither exists nor is declared before. (3.13 skips the binding.)"""
        for end, name in (("exchange", source), (kind, destination)):
            if not self._has(vhost, end, name):
                raise DefinitionsError(f"{entry.title}: there is no {end} '{name}'")

    def _has(self, vhost: str, kind: str, name: str) -> bool:
        """Return whether a vhost has a queue or an exchange, or gets it from the document."""
        there = self.broker.vhosts.get(vhost)
        new = self._new_exchanges if kind == "exchange" else self._new_queues
        old = () if there is None else there.exchanges if kind == "exchange" else there.queues
        # A new vhost has the default exchange, and those with reserved names.
        is_default = there is None and kind == "exchange" and (not name or name.startswith(RESERVED))
        return name in new.get(vhost, ()) or name in old or is_default

    def _bind(
        self, title: str, vhost: str, source: str, kind: str, destination: str, key: str, table: fields.Table
    ) -> None:
        there = self.broker.vhost(vhost)
        origin = there.exchanges.get(source)
        target = there.exchanges.get(destination) if kind == "exchange" else there.queues.get(destination)
        if origin is None or target is None:
            missing = f"exchange '{source}'" if origin is None else f"{kind} '{destination}'"
            self.notes.append(f"{title} is skipped, since there is no {missing}")
            return
        there.bind(origin, target, key, table)

    @contextmanager
    def _validating(self, *names: str) -> Iterator[None]:
        """Report an invalid policy or parameter in RabbitMQ's words, followed by its names. Raise DefinitionsError."""
        try:
            yield
        except InvalidParameter as error:
            place = "/".join(names)
            if self.broker.profile.release >= (4, 3):
                component = f' / component: "{names[1]}" /' if names[2:] else ""
                place = f'vhost: "{names[0]}"{component} key: "{names[-1]}"'
            raise DefinitionsError(f"Validation failed\n\n{error}\n ({place})") from None

    def _skip(self, entry: Entry, kind: str, name: str) -> None:
        if name:
            self.notes.append(f"Skipping import of {kind} whose name begins with 'amq.', name: {name}")
        else:
            self.notes.append(f"{entry.title} is skipped: it is the default exchange")
