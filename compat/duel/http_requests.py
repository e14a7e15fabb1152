"""Random HTTP requests and definitions, played at this broker and at a live oracle.

`python -m compat.duel.http_requests --oracle 4.3 --programs 300 --seed 1` plays programs of requests, each in a vhost
of its own, and compares the statuses, the values that are read, and the export of the vhost at the end. Hypothesis
draws the programs and shrinks the first that differs; it is printed, and the exit code is 1. Texts of refusals are not
compared, since this broker's are sentences. A request at which RabbitMQ crashes (500) is counted and not judged, and
neither is the rest of its program.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api, Ask
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

PROFILES: Final = {"3.10": "3.13", "4.0": "4.0", "4.3": "4.3"}
STEPS_MAX: Final = 8
# Stands for the vhost of the program.
VHOST: Final = "{vhost}"

Document = dict[str, Any]
# A key that is left out.
ABSENT: Final = object()

ODD: Final = st.sampled_from([None, "", "x", 5, -1, 1.5, True, False, [], {}, ["x"], {"a": None}, ABSENT])
NAMES: Final = st.sampled_from(["a", "b", "é", "a b", "amq.direct", "amq.new", "x" * 256])
FLAGS: Final = st.sampled_from([True, False, "true", "maybe", None, ABSENT])
ARGUMENTS: Final[st.SearchStrategy[Document]] = st.one_of(
    st.just({}),
    st.dictionaries(
        st.sampled_from(["x-max-length", "x-expires", "x-queue-type", "x-overflow", "x-message-ttl", "other"]),
        st.sampled_from([1000, 0, -1, "classic", "quorum", "drop-head", "x", None, 1.5, True]),
        max_size=2,
    ),
)


def _body(usual: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Document]:
    """Return bodies with these fields, of which some have odd values, and now and then an unknown one."""
    drawn = {name: st.one_of(values, values, values, ODD) for name, values in usual.items()}
    more: st.SearchStrategy[Document] = st.one_of(st.just({}), st.just({}), st.just({"unknown": 1}))
    return st.tuples(st.fixed_dictionaries(drawn), more).map(
        lambda parts: {name: value for name, value in {**parts[0], **parts[1]}.items() if value is not ABSENT}
    )


EXCHANGE: Final = {
    "type": st.sampled_from(["direct", "fanout", "topic", "headers", "nonsense"]),
    "durable": FLAGS,
    "auto_delete": FLAGS,
    "internal": FLAGS,
    "arguments": st.just({}),
}
QUEUE: Final = {"durable": FLAGS, "auto_delete": FLAGS, "arguments": ARGUMENTS}
BINDING: Final = {"routing_key": st.sampled_from(["", "a", "a.b"]), "arguments": st.just({})}
POLICY: Final = {
    "pattern": st.sampled_from(["", "^a", "("]),
    "definition": st.sampled_from([{"max-length": 1}, {"expires": 1000}, {"nonsense": 1}, {}]),
    "priority": st.sampled_from([0, 1]),
    "apply-to": st.sampled_from(["all", "queues", "exchanges", "nonsense"]),
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
SECTIONS: Final[dict[str, dict[str, Any]]] = {
    "exchanges": {"name": st.sampled_from(["a", "b"]), **EXCHANGE},
    "queues": {"name": st.sampled_from(["a", "b", ""]), **QUEUE},
    "policies": {"name": st.sampled_from(["a", "b"]), **POLICY},
    "bindings": {
        "source": st.sampled_from(["a", "amq.fanout"]),
        "destination": st.sampled_from(["a", "b"]),
        "destination_type": st.sampled_from(["queue", "exchange"]),
        **BINDING,
    },
}
# Wrong types of these are kept by RabbitMQ, which then fails to list or to export its objects.
KEPT_WRONG: Final = {"name", "source", "destination", "routing_key", "durable", "auto_delete", "internal"}
COLUMNS: Final = "columns=name,type,durable,auto_delete,internal,arguments,source,destination,routing_key"


@st.composite
def _requests(draw: st.DrawFn) -> Ask:
    """Return a request below a vhost."""
    name, other = (draw(NAMES) for _ in range(2))
    path = _quoted(name)
    kinds: dict[str, Any] = {
        f"PUT exchanges/{VHOST}/{path}": EXCHANGE,
        f"PUT queues/{VHOST}/{path}": QUEUE,
        f"POST bindings/{VHOST}/e/{path}/q/{_quoted(other)}": BINDING,
        f"POST bindings/{VHOST}/e/{path}/e/{_quoted(other)}": BINDING,
        f"PUT policies/{VHOST}/{path}": POLICY,
        f"POST exchanges/{VHOST}/{path}/publish": MESSAGE,
        f"POST queues/{VHOST}/{path}/get": GET,
        f"PUT vhost-limits/{VHOST}/max-queues": LIMIT,
        **{f"DELETE {kind}/{VHOST}/{path}": None for kind in ("exchanges", "queues", "policies")},
        f"DELETE queues/{VHOST}/{path}/contents": None,
        f"DELETE queues/{VHOST}/{path}?if-empty=true": None,
        **{f"GET {kind}/{VHOST}/{path}?{COLUMNS}": None for kind in ("exchanges", "queues")},
        **{f"GET {kind}/{VHOST}?{COLUMNS}": None for kind in ("exchanges", "queues", "bindings")},
    }
    method, _, target = draw(st.sampled_from(sorted(kinds))).partition(" ")
    shape = kinds[f"{method} {target}"]
    return Ask(method, target, None if shape is None else draw(_body(shape)))


@st.composite
def _imports(draw: st.DrawFn) -> Ask:
    """Return an import of definitions into the vhost, without values that RabbitMQ keeps wrongly."""
    document: Document = {}
    for section in draw(st.lists(st.sampled_from(sorted(SECTIONS)), min_size=1, max_size=3, unique=True)):
        usual = {
            name: values.filter(lambda value: value is ABSENT or isinstance(value, bool)) if values is FLAGS else values
            for name, values in SECTIONS[section].items()
        }
        fixed = {name: values for name, values in usual.items() if name in KEPT_WRONG}
        odd = {name: values for name, values in usual.items() if name not in KEPT_WRONG}
        item = {**draw(st.fixed_dictionaries(fixed)), **draw(_body(odd))}
        document[section] = [{name: value for name, value in item.items() if value is not ABSENT}]
    return Ask("POST", f"definitions/{VHOST}", document)


PROGRAMS: Final = st.lists(st.one_of(_requests(), _requests(), _requests(), _imports()), min_size=1, max_size=STEPS_MAX)


def _quoted(name: str) -> str:
    return quote(name, safe="")


class Duel:
    """Two brokers that play the same programs."""

    def __init__(self, oracle: Api, ours: Api) -> None:
        self.oracle, self.ours = oracle, ours
        self.counts = Counter[str]()

    def play(self, program: list[Ask]) -> str:
        """Return the first difference between the answers of both, or ""."""
        self.counts["programs"] += 1
        vhost = f"duel{self.counts['programs']}"
        for api in (self.oracle, self.ours):
            api.ask(Ask("PUT", f"vhosts/{vhost}"))
            api.ask(Ask("PUT", f"permissions/{vhost}/guest", {"configure": ".*", "write": ".*", "read": ".*"}))
        try:
            return next(self._differences(program, vhost), "")
        finally:
            for api in (self.oracle, self.ours):
                api.ask(Ask("DELETE", f"vhosts/{vhost}"))

    def _differences(self, program: list[Ask], vhost: str) -> Iterator[str]:
        for step in (*program, Ask("GET", f"definitions/{VHOST}")):
            ask = step._replace(path=step.path.replace(VHOST, vhost))
            theirs, mine = self.oracle.ask(ask), self.ours.ask(ask)
            self.counts["requests"] += 1
            if theirs.status >= 500:
                self.counts["crashes of RabbitMQ"] += 1
                return
            if theirs.status >= 400 and 400 <= mine.status < 500:
                # Of two mistakes in one request, either may be named.
                self.counts["refusals with another status"] += theirs.status != mine.status
                if step.path.startswith("definitions"):
                    # RabbitMQ has declared what comes before the error; a refused import changes nothing here.
                    return
                continue
            shown = [(reply.status, _comparable(reply.value, reply.status)) for reply in (theirs, mine)]
            if shown[0] != shown[1]:
                yield f"{step.title}\n  RabbitMQ {_text(theirs)}\n  here     {_text(mine)}"


def _text(reply: Any) -> str:
    return f"{reply.status} {json.dumps(reply.value, ensure_ascii=False)[:600]}"


def _comparable(value: Any, status: int) -> Any:
    """Return an answer without orders, texts of refusals, and the usual type of a queue."""
    if status >= 400:
        return None
    if isinstance(value, list):
        # Exports of RabbitMQ 4 leave internal exchanges out.
        items = [item for item in value if not (isinstance(item, dict) and item.get("internal") is True)]
        return sorted((_comparable(item, status) for item in items), key=json.dumps)
    if isinstance(value, dict):
        if "exchanges" in value:
            # An export: the objects, without what each version says about itself.
            value = {section: value.get(section, []) for section in SECTIONS}
        left_out = {"type", "internal", "vhost", "properties_key"}
        shown = {key: _comparable(item, status) for key, item in value.items() if key not in left_out}
        if shown.get("x-queue-type") == "classic":
            del shown["x-queue-type"]
        return shown
    return value


def main() -> int:
    """Play, print, and return the exit code: 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m compat.duel.http_requests", description=__doc__)
    parser.add_argument("--oracle", choices=sorted(PROFILES), default="4.3", help="the version to play at")
    parser.add_argument("--programs", type=int, default=300, help="the number of programs")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same programs")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        theirs = RabbitMQ(Path(folder, "oracle"), plugins=("rabbitmq_management",), oracle=ORACLES[chosen.oracle])
        ours = AmqpBroker(Path(folder, "ours"), profile=PROFILES[chosen.oracle])
        with theirs.running(), ours.running():
            duel = Duel(Api(theirs), Api(ours))
            found = _first_difference(duel, chosen.programs, chosen.seed)
    print(", ".join(f"{count} {name}" for name, count in duel.counts.items()))
    if found:
        print(f"seed {chosen.seed}: they differ at the last of these requests\n{found}")
    return 1 if found else 0


def _first_difference(duel: Duel, count: int, number: int) -> str:
    """Return the smallest program that differs, with both answers, or ""."""
    shrunk: list[str] = []

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(PROGRAMS)
    def duelling(program: list[Ask]) -> None:
        difference = duel.play(program)
        if difference:
            shrunk.append("\n".join(f"  {step.title}" for step in program) + f"\n{difference}")
        assert not difference

    try:
        duelling()
    except AssertionError:
        # The last play is that of the smallest program.
        return shrunk[-1]
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
