"""Strategies of HTTP requests: each kind of object, with odd names, bodies, headers and parameters."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from compat.duel.http_steps import USER, VHOST, Step
from compat.duel.odd_values import with_mistakes
from compat.management.http_asking import Ask

STEPS_MAX: Final = 8

NAMES: Final = st.sampled_from(["a", "b", "é", "a b", "amq.direct", "amq.new", "x" * 256])
FLAGS: Final = st.sampled_from([True, False, "true", "maybe"])
ARGUMENTS: Final[st.SearchStrategy[dict[str, Any]]] = st.one_of(
    st.just({}),
    st.dictionaries(
        st.sampled_from(["x-max-length", "x-expires", "x-queue-type", "x-overflow", "x-message-ttl", "other"]),
        st.sampled_from([100_000, 0, -1, "classic", "quorum", "drop-head", "x", None, 1.5, True]),
        max_size=2,
    ),
)
EXCHANGE: Final = {
    "type": st.sampled_from(["direct", "fanout", "topic", "headers", "nonsense"]),
    "durable": FLAGS,
    "auto_delete": FLAGS,
    "internal": FLAGS,
    "arguments": st.sampled_from([{}, {"alternate-exchange": "a"}, {"alternate-exchange": 5}]),
}
QUEUE: Final = {"durable": FLAGS, "auto_delete": FLAGS, "arguments": ARGUMENTS}
BINDING: Final = {
    "routing_key": st.sampled_from(["", "a", "a.b", "x" * 256]),
    "arguments": st.sampled_from([{}, {"x-match": "any"}, {"x-match": "nonsense"}]),
}
POLICY: Final = {
    "pattern": st.sampled_from(["", "^a", "("]),
    "definition": st.sampled_from([{"max-length": 1}, {"expires": 100_000}, {"nonsense": 1}, {"max-length": "1"}, {}]),
    "priority": st.sampled_from([0, 1]),
    "apply-to": st.sampled_from(["all", "queues", "exchanges", "quorum_queues", "nonsense"]),
}
MESSAGE: Final = {
    "routing_key": st.sampled_from(["", "a", "b"]),
    "properties": st.sampled_from([{}, {"delivery_mode": 2}, {"headers": {"a": 1}}, {"expiration": "x"}]),
    "payload": st.sampled_from(["", "text", "é", "aGk="]),
    "payload_encoding": st.sampled_from(["string", "base64", "nonsense"]),
}
GET: Final = {
    "count": st.sampled_from([0, 1, 2]),
    "ackmode": st.sampled_from(["ack_requeue_true", "ack_requeue_false", "reject_requeue_false", "nonsense"]),
    "encoding": st.sampled_from(["auto", "base64", "nonsense"]),
}
LIMIT: Final = {"value": st.sampled_from([-1, 0, 1, 100])}
PATTERNS: Final = st.sampled_from(["", ".*", "^a", "("])
PERMISSION: Final = dict.fromkeys(("configure", "write", "read"), PATTERNS)
TOPIC_PERMISSION: Final = {
    "exchange": st.sampled_from(["amq.topic", "a", ""]),
    "write": PATTERNS,
    "read": PATTERNS,
}
TAGS: Final = st.sampled_from(["", "management", "monitoring, policymaker", "nonsense", ["management"], []])
ACCOUNT: Final = {"password": st.sampled_from(["", "secret"]), "tags": TAGS}
VIRTUAL_HOST: Final = {
    "description": st.sampled_from(["", "some"]),
    "tags": st.sampled_from(["", "a,b", ["a"]]),
    "default_queue_type": st.sampled_from(["classic", "quorum", "nonsense"]),
    "tracing": FLAGS,
}
PARAMETER: Final = {"value": st.sampled_from([{}, 1, "x", {"max-queues": 5}, {"uri": "amqp://"}])}
BULK: Final = {"users": st.sampled_from([[f"{USER}-b"], [], ["none"], [5], "x"])}

# Below a vhost, with names of objects as `{a}` and `{b}`.
_KINDS: Final[dict[str, Any]] = {
    f"PUT exchanges/{VHOST}/{{a}}": EXCHANGE,
    f"PUT queues/{VHOST}/{{a}}": QUEUE,
    f"POST bindings/{VHOST}/e/{{a}}/q/{{b}}": BINDING,
    f"POST bindings/{VHOST}/e/{{a}}/e/{{b}}": BINDING,
    f"PUT policies/{VHOST}/{{a}}": POLICY,
    f"PUT operator-policies/{VHOST}/{{a}}": POLICY,
    f"POST exchanges/{VHOST}/{{a}}/publish": MESSAGE,
    f"POST queues/{VHOST}/{{a}}/get": GET,
    f"PUT vhost-limits/{VHOST}/max-queues": LIMIT,
    f"PUT vhost-limits/{VHOST}/{{a}}": LIMIT,
    f"PUT user-limits/{USER}/max-channels": LIMIT,
    f"PUT user-limits/{USER}/{{a}}": LIMIT,
    f"PUT permissions/{VHOST}/{USER}": PERMISSION,
    f"PUT permissions/{VHOST}/{{a}}": PERMISSION,
    f"PUT topic-permissions/{VHOST}/{USER}": TOPIC_PERMISSION,
    f"PUT users/{USER}-b": ACCOUNT,
    f"PUT vhosts/{VHOST}-b": VIRTUAL_HOST,
    f"PUT parameters/vhost-limits/{VHOST}/limits": PARAMETER,
    f"PUT parameters/nonsense/{VHOST}/{{a}}": PARAMETER,
    f"PUT global-parameters/{USER}": PARAMETER,
    "POST users/bulk-delete": BULK,
    **{
        f"DELETE {path}": None
        for path in (
            *(f"{kind}/{VHOST}/{{a}}" for kind in ("exchanges", "queues", "policies", "operator-policies")),
            *(f"{kind}/{VHOST}/{USER}" for kind in ("permissions", "topic-permissions")),
            f"queues/{VHOST}/{{a}}/contents",
            f"queues/{VHOST}/{{a}}?if-empty=true",
            f"queues/{VHOST}/{{a}}?if-unused=true",
            f"exchanges/{VHOST}/{{a}}?if-unused=true",
            f"bindings/{VHOST}/e/{{a}}/q/{{b}}/~",
            f"bindings/{VHOST}/e/{{a}}/q/{{b}}/a",
            f"vhost-limits/{VHOST}/max-queues",
            f"user-limits/{USER}/max-channels",
            f"users/{USER}-b",
            f"vhosts/{VHOST}-b",
            f"global-parameters/{USER}",
            f"parameters/nonsense/{VHOST}/{{a}}",
        )
    },
}
_OBJECTS: Final = ("exchanges", "queues")
_READ: Final = (
    *(f"{kind}/{VHOST}/{{a}}" for kind in (*_OBJECTS, "policies", "operator-policies")),
    *(f"{kind}/{VHOST}" for kind in (*_OBJECTS, "bindings", "policies", "operator-policies", "vhost-limits")),
    *(f"exchanges/{VHOST}/{{a}}/bindings/{end}" for end in ("source", "destination")),
    f"queues/{VHOST}/{{a}}/bindings",
    f"bindings/{VHOST}/e/{{a}}/q/{{b}}",
    f"bindings/{VHOST}/e/{{a}}/q/{{b}}/~",
    f"permissions/{VHOST}/{USER}",
    f"topic-permissions/{VHOST}/{USER}",
    f"vhosts/{VHOST}/permissions",
    f"users/{USER}/permissions",
    f"users/{USER}-b/topic-permissions",
    f"user-limits/{USER}",
    f"parameters/vhost-limits/{VHOST}",
    f"parameters/nonsense/{VHOST}",
    f"global-parameters/{USER}",
)
COLUMNS: Final = "name,type,durable,auto_delete,internal,arguments,source,destination,routing_key,vhost,user,value"
_PAGES: Final = st.fixed_dictionaries(
    {},
    optional={
        "page": st.sampled_from(["1", "2", "0", "-1", "x", ""]),
        "page_size": st.sampled_from(["1", "500", "501", "0", "x"]),
        "name": st.sampled_from(["a", "amq", "", "("]),
        "use_regex": st.sampled_from(["true", "false", "x"]),
        "sort": st.sampled_from(["name", "type", "nonsense", ""]),
        "sort_reverse": st.sampled_from(["true", "false", "x"]),
        "unknown": st.just("x"),
    },
)
_HEADERS: Final = st.sampled_from(
    [
        {"Accept": "application/json"},
        {"Accept": "*/*"},
        {"Accept": "text/html"},
        {"Accept": "nonsense"},
        {"Content-Type": "application/octet-stream"},
        {"Content-Type": "nonsense"},
        {"Authorization": "Basic nonsense"},
        {"Authorization": ""},
        {"X-Unknown": "x"},
    ]
)
_NOT_OBJECTS: Final = st.sampled_from([b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff", b"[1]", b"{}", b" ", b"[{}]"])


@st.composite
def _writes(draw: st.DrawFn) -> Step:
    """Return a request that writes."""
    kind = draw(st.sampled_from(sorted(_KINDS)))
    method, _, path = kind.partition(" ")
    shape = _KINDS[kind]
    body: object = None
    if shape is not None:
        body = draw(st.one_of(*[with_mistakes(shape)] * 9, _NOT_OBJECTS))
    return Step(Ask(method, draw(_named(path)), body))


@st.composite
def _reads(draw: st.DrawFn) -> Step:
    """Return a request that reads."""
    path = draw(st.sampled_from(_READ))
    # A page of one object is the object with columns that were not asked for.
    more = draw(_PAGES) if path.endswith((f"/{VHOST}", "/bindings", "/permissions")) else {}
    return Step(Ask("GET", f"{draw(_named(path))}?{urlencode({'columns': COLUMNS, **more})}"))


@st.composite
def _named(draw: st.DrawFn, path: str) -> str:
    """Return a path with names in place of `{a}` and `{b}`."""
    for place in ("{a}", "{b}"):
        if place in path:
            path = path.replace(place, quote(draw(NAMES), safe=""))
    return path


REQUESTS: Final = st.lists(st.one_of(_writes(), _writes(), _reads()), min_size=1, max_size=STEPS_MAX)

# One request each: the headers decide before anything else does.
HEADERS: Final = st.builds(Step._replace, st.one_of(_writes(), _reads()), headers=_HEADERS).map(lambda step: [step])
