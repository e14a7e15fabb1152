"""A fault rule: what goes wrong, when, for which connections and messages, and how often."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.amqp.errors import AMQPError, InvalidParameter
from amqp_broker.broker.admin import globs, patterns
from amqp_broker.broker.admin.similar_names import did_you_mean
from amqp_broker.broker.lab.dice import Dice

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.timers import Timer

# Rules of a broker.
RULES_MAX: Final = 1000
TEXT_BYTES_MAX: Final = 255
# A week: a longer time is taken for a mistake.
TIME_MAX_MS: Final = 7 * 24 * 3600 * 1000
COUNT_MAX: Final = 2**63 - 1
# Prefix of regular expressions; every other pattern is a glob.
REGEX: Final = "regex:"

# Words by which users look for a field.
OTHER_NAMES: Final = {
    **dict.fromkeys(("event", "moment", "when", "at"), "on"),
    **dict.fromkeys(("key", "routingkey", "topic"), "routing_key"),
    **dict.fromkeys(("count", "limit", "max"), "times"),
    **dict.fromkeys(("delay", "latency", "latency_ms"), "delay_ms"),
    **dict.fromkeys(("duration", "for_ms"), "duration_ms"),
    **dict.fromkeys(("share", "rate", "chance"), "probability"),
    **dict.fromkeys(("skip", "from"), "after"),
}

# The moments of a rule.
CONNECT, LOGIN, OPEN, PUBLISH, CONFIRM = "connect", "login", "open", "publish", "confirm"
DELIVER, ACK, DEAD_LETTER, METHOD, NOW = "deliver", "ack", "dead_letter", "method", "now"

# Fields that are known at each moment, and so can be matched.
OF_LOGIN: Final = ("user", "connection", "client_property")
OF_OPEN: Final = ("vhost", *OF_LOGIN)
OF_MESSAGE: Final = (*OF_OPEN, "exchange", "routing_key", "queue")
OF_METHOD: Final = (*OF_MESSAGE, "method")
KNOWN: Final[dict[str, tuple[str, ...]]] = {
    CONNECT: (),
    LOGIN: OF_LOGIN,
    OPEN: OF_OPEN,
    PUBLISH: OF_MESSAGE,
    CONFIRM: OF_MESSAGE,
    DELIVER: OF_MESSAGE,
    ACK: OF_MESSAGE,
    DEAD_LETTER: ("vhost", "exchange", "routing_key", "queue"),
    METHOD: OF_METHOD,
    NOW: OF_OPEN,
}

# The methods that a rule on "method" can hit; the other moments have publishes and settlements.
METHODS: Final = (
    "access.request",
    "basic.cancel",
    "basic.consume",
    "basic.get",
    "basic.qos",
    "basic.recover",
    "basic.recover-async",
    "channel.close",
    "channel.flow",
    "confirm.select",
    "exchange.bind",
    "exchange.declare",
    "exchange.delete",
    "exchange.unbind",
    "queue.bind",
    "queue.declare",
    "queue.delete",
    "queue.purge",
    "queue.unbind",
    "tx.commit",
    "tx.rollback",
    "tx.select",
)


class Action(NamedTuple):
    """The moments of an action (the first is the default), and its required and its optional parameters."""

    on: tuple[str, ...]
    needs: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()


WIRE: Final = (NOW, LOGIN, OPEN, PUBLISH, CONFIRM, DELIVER, METHOD)
ACTIONS: Final[dict[str, Action]] = {
    "confirm_nack": Action((PUBLISH,)),
    "confirm_drop": Action((PUBLISH,)),
    "confirm_delay": Action((PUBLISH,), ("delay_ms",)),
    "return": Action((PUBLISH,), (), ("code", "text", "is_routed")),
    "close_channel": Action((NOW, PUBLISH, CONFIRM, DELIVER, METHOD), (), ("code", "text")),
    "close_connection": Action((NOW, OPEN, PUBLISH, CONFIRM, DELIVER, METHOD), (), ("code", "text")),
    "cut": Action(WIRE, (), ("is_mid_frame",)),
    "reset": Action(WIRE, (), ("is_mid_frame",)),
    "black_hole": Action((NOW, OPEN, PUBLISH, CONFIRM, DELIVER, METHOD)),
    "refuse": Action((CONNECT,)),
    "refuse_login": Action((LOGIN,)),
    "block": Action((NOW, OPEN, PUBLISH), (), ("text", "duration_ms")),
    "unblock": Action((NOW,)),
    "cancel_consumer": Action((NOW, DELIVER)),
    "stop_heartbeats": Action((NOW, OPEN)),
    "latency": Action((NOW, OPEN), ("delay_ms",), ("jitter_ms", "direction")),
    "bandwidth": Action((NOW, OPEN), ("bytes_per_s",), ("direction",)),
    "slow_close": Action((NOW, OPEN), ("delay_ms",)),
    "duplicate": Action((DELIVER,)),
    "delay_delivery": Action((DELIVER,), ("delay_ms",)),
    "hold_delivery": Action((DELIVER,)),
    "drop_ack": Action((ACK,)),
    "drop_dead_letter": Action((DEAD_LETTER,)),
}
# The parameters of actions, and those that are texts.
PARAMETERS: Final = (
    "delay_ms",
    "jitter_ms",
    "duration_ms",
    "bytes_per_s",
    "direction",
    "code",
    "text",
    "is_routed",
    "is_mid_frame",
)
TEXTS: Final = ("text", "direction")
# The broker's output, which is the default, or its input.
DIRECTIONS: Final = ("output", "input")
# Actions that keep back a delivery.
KEEPING_BACK: Final = frozenset({"delay_delivery", "hold_delivery"})
# Actions after which the channel or the connection is not served any more: no other rule has an effect then.
ENDS: Final = frozenset({"close_channel", "close_connection", "cut", "reset", "black_hole", "refuse", "refuse_login"})
# Default reply code and text by action.
REPLIES: Final = {
    "return": (312, "NO_ROUTE"),
    "close_channel": (406, "PRECONDITION_FAILED - closed by a fault"),
    "close_connection": (320, "CONNECTION_FORCED - closed by a fault"),
}
REPLY_CODES: Final = range(200, 600)


@dataclass(eq=False)
class Rule:
    """The fault (`action`), its moment (`on`), the fields to match, and how often it hits. Times are in ms.

    Patterns are globs (broker/admin/globs.py), or regular expressions after `regex:`; `vhost` is a name, and the
    exchange `amq.default` the default one. None matches everything. The first `after` matches are passed over; each
    later match is a hit with `probability`, until there were `times` hits. `matched` and `hits` count them; `hits` of a
    rule on "now" counts what it found.

    `then` are the rules that follow it in a sequence: each begins when the one before it is spent, and has the same
    fields to match unless it has its own. All but the last hit once, unless they have `times`.
    """

    action: str
    on: str = ""
    vhost: str | None = None
    exchange: str | None = None
    routing_key: str | None = None
    queue: str | None = None
    method: str | None = None
    user: str | None = None
    connection: str | None = None
    client_property: Mapping[str, str] = field(default_factory=dict)
    times: int | None = None
    after: int = 0
    probability: float = 1.0
    seed: int | None = None
    delay_ms: int = 0
    jitter_ms: int = 0
    duration_ms: int = 0
    bytes_per_s: int = 0
    direction: str = ""
    code: int = 0
    text: str = ""
    is_routed: bool = False
    is_mid_frame: bool = False
    then: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        self.id = 0
        # When it was added (ms of real time).
        self.added_at_ms = 0
        self.matched = 0
        self.hits = 0
        # The rule before it in a sequence.
        self.follows: Rule | None = None
        # Connections on which its effect lasts, and the timers that end the effect early.
        self.affected: dict[Connection, Timer | None] = {}
        self._dice = Dice(0)
        # Queue and position of messages that came back after a delay: they are not delayed twice.
        self.delayed: set[tuple[Queue, int]] = set()
        # Deliveries that wait for their release, the oldest first.
        self.held: deque[DelayedDelivery] = deque()
        # Deliveries that were released before they came.
        self.allowed = 0

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Rule:
        """Return the rule that JSON describes. Raise InvalidParameter."""
        if not isinstance(given.get("action"), str):
            raise InvalidParameter("a fault needs an 'action': " + ", ".join(ACTIONS))
        names = {one.name for one in fields(cls)}
        if unknown := [name for name in given if name not in names]:
            word = unknown[0].lower().replace("-", "_")
            wanted = word if word in names else OTHER_NAMES.get(word)
            question = f"; did you mean '{wanted}'?" if wanted else did_you_mean(word, names, "; ")
            raise InvalidParameter(f"a fault has no field '{unknown[0]}', but {', '.join(sorted(names))}{question}")
        # A field that is null counts as absent.
        return cls(**{name: value for name, value in given.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """Return the rule for JSON: the id of the rule that it follows, the given fields, and its counts."""
        given: dict[str, Any] = {"id": self.id}
        if self.follows is not None:
            given["follows"] = self.follows.id
        for one in fields(self):
            if one.name == "then":
                # The rules that follow have entries of their own.
                continue
            value = getattr(self, one.name)
            default = {} if one.default is MISSING else one.default
            if one.name in ("action", "on", "seed") or value != default:
                given[one.name] = value
        if self.action == "hold_delivery":
            given.update(held=len(self.held), allowed=self.allowed)
        return {**given, "matched": self.matched, "hits": self.hits, "is_spent": self.is_spent}

    def parameters(self) -> dict[str, Any]:
        """Return what the action has been given: a delay, a reply code, a text and the like."""
        action = ACTIONS[self.action]
        return {name: value for name in (*action.needs, *action.may_have) if (value := getattr(self, name))}

    @property
    def is_on_input(self) -> bool:
        """True if the rule concerns the input of the broker, and not its output."""
        return self.direction == "input"

    @property
    def is_spent(self) -> bool:
        return self.on == NOW or (self.times is not None and self.hits >= self.times)

    @property
    def is_active(self) -> bool:
        """True while the rule may hit: it is not spent, but the rule before it in a sequence is."""
        return not self.is_spent and (self.follows is None or self.follows.is_spent)

    def sequence(self) -> list[Rule]:
        """Return the rule and those that follow it. Raise InvalidParameter."""
        steps: object = self.then
        if not isinstance(steps, Sequence) or not all(isinstance(step, Mapping) for step in steps):
            raise InvalidParameter(f"then must be a list of objects, not {steps!r}")
        if len(steps) >= RULES_MAX:
            raise InvalidParameter(f"then has {len(steps)} rules, and {RULES_MAX - 1} is the most")
        rules = [self]
        common = {name: getattr(self, name) for name in OF_METHOD}
        for step in steps:
            if "then" in step:
                raise InvalidParameter("a rule in 'then' has no 'then' of its own")
            rule = Rule.from_mapping({**common, **step})
            rule.follows = rules[-1]
            rules.append(rule)
        for rule in rules[:-1]:
            rule.times = 1 if rule.times is None else rule.times
        return rules

    # Checks

    def check(self) -> None:
        """Fill in defaults. Raise InvalidParameter for a rule that is not possible."""
        action = ACTIONS.get(self.action)
        if action is None:
            question = did_you_mean(self.action, ACTIONS, "; ")
            raise InvalidParameter(f"unknown action '{self.action}'; there are: {', '.join(ACTIONS)}{question}")
        self._check_types()
        self.on = self.on or action.on[0]
        if self.on not in action.on:
            raise InvalidParameter(f"'{self.action}' is not possible on '{self.on}', but on {', '.join(action.on)}")
        if self.on == NOW and (self.then or self.follows):
            raise InvalidParameter("a rule on 'now' is no part of a sequence; 'on' names another moment")
        known = known_fields(self.action, self.on)
        for name in OF_METHOD:
            if getattr(self, name) not in (None, {}) and name not in known:
                raise InvalidParameter(
                    f"'{name}' is not known on '{self.on}'; '{self.action}' is also possible on: {', '.join(action.on)}"
                )
        for name in PARAMETERS:
            if getattr(self, name) and name not in (*action.needs, *action.may_have):
                raise InvalidParameter(f"'{self.action}' has no {name}")
            if name in action.needs and not getattr(self, name):
                raise InvalidParameter(f"'{self.action}' needs {name}")
        if self.direction not in ("", *DIRECTIONS):
            raise InvalidParameter(f"direction must be {' or '.join(DIRECTIONS)}, not '{self.direction}'")
        if self.on == NOW and (self.times is not None or self.after or self.probability != 1.0):
            raise InvalidParameter("times, after and probability mean nothing on 'now'")
        if self.method is not None and not any(can_hit(self.action, self.method, name) for name in METHODS):
            those = ", ".join(METHODS) + did_you_mean(self.method, METHODS, "; ")
            raise InvalidParameter(f"method '{self.method}' is none of those that a rule can hit: {those}")
        code, text = REPLIES.get(self.action, (0, ""))
        self.code = self.code or code
        if "code" in action.may_have and self.code not in REPLY_CODES:
            raise InvalidParameter(f"code must be a reply code from 200 to 599, not {self.code}")
        if code and not self.text:
            self.text = text if self.code == code else f"{name_of(self.code)} - closed by a fault"

    def _check_types(self) -> None:
        for name in ("on", "vhost", "exchange", "routing_key", "queue", "method", "user", "connection", *TEXTS):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidParameter(f"{name} must be a text, not {value!r}")
            if value is not None and len(value.encode("utf-8", "surrogateescape")) > patterns.PATTERN_BYTES_MAX:
                raise InvalidParameter(f"{name} is longer than {patterns.PATTERN_BYTES_MAX} octets")
            if value is not None and name not in ("on", "vhost", *TEXTS) and value.startswith(REGEX):
                patterns.check(value.removeprefix(REGEX))
        if len(self.text.encode("utf-8", "surrogateescape")) > TEXT_BYTES_MAX:
            raise InvalidParameter(f"text is longer than {TEXT_BYTES_MAX} octets")
        properties: object = self.client_property
        if not isinstance(properties, Mapping) or not all(
            isinstance(part, str) for pair in properties.items() for part in pair
        ):
            raise InvalidParameter("client_property must be an object whose values are texts")
        for value in self.client_property.values():
            if value.startswith(REGEX):
                patterns.check(value.removeprefix(REGEX))
        for name, low, high in NUMBERS:
            value = getattr(self, name)
            if value is None and name in ("times", "seed"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise InvalidParameter(f"{name} must be a whole number from {low} to {high}, not {value!r}")
        for name in ("is_routed", "is_mid_frame"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameter(f"{name} must be true or false, not {getattr(self, name)!r}")
        chance: object = self.probability
        if not isinstance(chance, (int, float)) or isinstance(chance, bool) or not 0 < chance <= 1:
            raise InvalidParameter(f"probability must be more than 0 and at most 1, not {chance!r}")

    # Matching

    def matches_connection(self, connection: Connection, user: str | None = None) -> bool:
        """Return whether the fields of a connection match; `user` is the name it gives before its login."""
        if connection in self.affected:
            # The effect lasts already, so nothing would be seen of another hit.
            return False
        if self.vhost is not None and (connection.vhost is None or connection.vhost.name != self.vhost):
            return False
        name = user if connection.user is None else connection.user.name
        if self.user is not None and (name is None or not fits(self.user, name)):
            return False
        properties = connection.client_properties
        if self.connection is not None and not (
            fits(self.connection, connection.name)
            or fits(self.connection, str(properties.get("connection_name", connection.name)))
        ):
            return False
        return all(
            name in properties and fits(value, str(properties[name])) for name, value in self.client_property.items()
        )

    def matches_message(self, exchange: str, routing_key: str) -> bool:
        return (self.exchange is None or fits(globs.exchange_name(self.exchange), exchange)) and (
            self.routing_key is None or fits(self.routing_key, routing_key)
        )

    def matches_queue(self, names: Iterable[str]) -> bool:
        return self.queue is None or any(fits(self.queue, name) for name in names)

    def count_match(self) -> bool:
        """Count a match, and return whether it is a hit."""
        self.matched += 1
        if self.matched <= self.after or (self.times is not None and self.hits >= self.times):
            return False
        if self.probability < 1.0 and self.random(2**53) >= self.probability * 2**53:
            return False
        self.hits += 1
        return True

    def release(self, connection: Connection) -> None:
        """End the effect on a connection."""
        timer = self.affected.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def start(self, seed: int) -> None:
        """Seed the random numbers, unless the rule has a seed."""
        if self.seed is None:
            self.seed = seed
        self._dice = Dice(self.seed)

    def random(self, below: int) -> int:
        """Return the next random number of this rule, below `below`."""
        return self._dice.below(below)


NUMBERS: Final = (
    ("times", 1, COUNT_MAX),
    ("after", 0, COUNT_MAX),
    ("seed", 0, COUNT_MAX),
    ("delay_ms", 0, TIME_MAX_MS),
    ("jitter_ms", 0, TIME_MAX_MS),
    ("duration_ms", 0, TIME_MAX_MS),
    ("bytes_per_s", 0, COUNT_MAX),
    ("code", 0, 65535),
)


def known_fields(action: str, on: str) -> tuple[str, ...]:
    """Return the fields that a rule with this action can match at a moment."""
    return (*OF_OPEN, "queue") if (action, on) == ("cancel_consumer", NOW) else KNOWN[on]


def can_hit(action: str, pattern: str | None, method: str) -> bool:
    """Return whether a rule with this action and pattern can hit a method.

    A channel that the client closes is not closed by the broker: it would not be answered.
    """
    return (pattern is None or fits(pattern, method)) and (action, method) != ("close_channel", "channel.close")


def fits(pattern: str, text: str) -> bool:
    """Return whether a glob, or a regular expression after `regex:`, matches a text."""
    if pattern.startswith(REGEX):
        return patterns.matches(pattern.removeprefix(REGEX), text)
    return globs.matches(pattern, text)


def name_of(code: int) -> str:
    """Return RabbitMQ's name of a reply code."""
    families = [AMQPError]
    for family in families:
        families += family.__subclasses__()
        if family.__module__ == AMQPError.__module__ and getattr(family, "code", None) == code:
            return family.name
    return "INTERNAL_ERROR"
