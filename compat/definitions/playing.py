"""Imports and exports definitions over a broker's HTTP API and collects the answers."""

from __future__ import annotations

import json
from typing import Any

from amqp_broker.cli.shared.http_api import Api
from compat.definitions.comparing import SECTIONS, comparable, owner
from compat.definitions.sample import of_vhost, sample

# Part of the names of the sample's objects, and of no others.
STEM = "given"
QUEUE = {"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {}}
EXCHANGE = {"vhost": "/", "name": "e", "type": "foo", "durable": True, "auto_delete": False, "arguments": {}}
BINDING = {"vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "q"}
PERMISSION = {"user": "guest", "vhost": "/", "configure": "", "write": "", "read": ""}
PARAMETER = {"vhost": "/", "component": "foo", "name": "x", "value": {}}
REFUSED: dict[str, dict[str, Any]] = {
    "a queue that expires at once": {"queues": [{**QUEUE, "arguments": {"x-expires": 0}}]},
    "a queue in a vhost that is not there": {"queues": [{**QUEUE, "vhost": "none"}]},
    "a queue without a vhost": {"queues": [{key: QUEUE[key] for key in QUEUE if key != "vhost"}]},
    "an exchange of an unknown type": {"exchanges": [EXCHANGE]},
    "a permission of a user who is not there": {"permissions": [{**PERMISSION, "user": "none"}]},
    "a permission in a vhost that is not there": {"permissions": [{**PERMISSION, "vhost": "none"}]},
    "a permission that is no pattern": {"permissions": [{**PERMISSION, "configure": "*"}]},
    "a user without tags": {"users": [{"name": "u", "password": "p"}]},
    "a user whose hash is none": {"users": [{"name": "u", "tags": "", "password_hash": "!"}]},
    "a policy of an unknown key": {"policies": [{"vhost": "/", "name": "p", "pattern": "a", "definition": {"foo": 1}}]},
    "a policy without a name": {"policies": [{"vhost": "/", "pattern": "a", "definition": {"expires": 1}}]},
    "an unknown limit": {
        "parameters": [{**PARAMETER, "component": "vhost-limits", "name": "limits", "value": {"foo": 1}}]
    },
    "a parameter of an unknown component": {"parameters": [PARAMETER]},
    "a user whose tags are null": {"users": [{"name": "u", "tags": None, "password_hash": ""}]},
    "a user whose limits are an array": {"users": [{"name": "u", "tags": "", "password_hash": "", "limits": []}]},
    "a user with a password and a hash": {"users": [{"name": "u", "tags": "", "password": "p", "password_hash": ""}]},
    "a binding to neither a queue nor an exchange": {
        "bindings": [{**BINDING, "source": "amq.direct", "destination_type": "foo"}]
    },
}
IGNORED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "an unknown section": {"no such section": [1], "queues": []},
    "an exchange whose name is reserved": {"exchanges": [{**EXCHANGE, "name": "amq.mine", "type": "direct"}]},
    "an exchange whose name is reserved in a vhost that is not there": {
        "exchanges": [{**EXCHANGE, "name": "amq.mine", "type": "direct", "vhost": "none"}]
    },
    "a quorum queue that deletes itself": {
        "queues": [{**QUEUE, "name": "impossible", "auto_delete": True, "arguments": {"x-queue-type": "quorum"}}]
    },
    # One at a time: RabbitMQ imports bindings at once, and its answer is about the one that fails first.
    "a binding of an exchange that is not there": {"bindings": [{**BINDING, "source": "none"}]},
    "a binding of the default exchange": {"bindings": [{**BINDING, "source": ""}]},
    "a binding to the default exchange": {
        "bindings": [{**BINDING, "source": "amq.direct", "destination_type": "exchange", "destination": ""}]
    },
}
TOPIC_PERMISSION = {"user": "guest", "vhost": "/", "exchange": "none", "write": "a", "read": "b"}
# Imported or skipped, by some versions at least.
ODD: dict[str, dict[str, Any]] = {
    "a binding in a vhost that is not there": {"bindings": [{**BINDING, "vhost": "none", "source": "amq.direct"}]},
    "a queue with an empty name": {"queues": [{**QUEUE, "name": ""}]},
    "a binding to a queue with an empty name": {"bindings": [{**BINDING, "source": "amq.fanout", "destination": ""}]},
    "a topic permission at an exchange that is not there": {"topic_permissions": [TOPIC_PERMISSION]},
    "a topic permission at an exchange of the same document": {
        "topic_permissions": [{**TOPIC_PERMISSION, "exchange": "topics"}],
        "exchanges": [{**EXCHANGE, "name": "topics", "type": "topic"}],
    },
    "a vhost with values beside its metadata": {
        "vhosts": [
            {
                "name": "twice",
                "description": "beside",
                "tags": ["beside"],
                "metadata": {"description": "inner", "tags": ["inner"], "default_queue_type": "quorum"},
            }
        ]
    },
    "a vhost with a description beside its metadata": {
        "vhosts": [{"name": "beside", "description": "beside", "metadata": {"tags": ["inner"]}}]
    },
    "objects without what they may lack": {
        "users": [{"name": "short", "password_hash": "", "tags": ""}],
        "vhosts": [{"name": "short"}],
        "queues": [{"vhost": "/", "name": "short", "durable": True, "auto_delete": False}],
        "exchanges": [{"vhost": "/", "name": "short", "type": "direct", "durable": True, "auto_delete": False}],
    },
    "a binding without arguments": {"bindings": [{**BINDING, "destination": "short", "source": "amq.direct"}]},
}
# Into a vhost that does not exist.
LOST = "queues into a vhost that is not there"
IMPORTS = (*REFUSED, *IGNORED, *ODD, LOST)
SAMPLE, SAMPLE_OF_VHOST = "import of the sample", "import of one vhost"
EXPORT, EXPORT_OF_VHOST = "export of the sample", "export of one vhost"


def play(api: Api) -> dict[str, Any]:
    """Return the answers by question; the answer to an import includes the added objects."""
    found = {question(name): _imported(api, document) for name, document in (REFUSED | IGNORED | ODD).items()}
    for name in ("twice", "beside"):
        vhost = api.get(f"/api/vhosts/{name}").value
        found[f"metadata of the vhost {name}"] = {key: vhost["metadata"][key] for key in ("description", "tags")}
    found[question(LOST)] = _imported(api, {"queues": []}, "/none")
    found[SAMPLE] = _answer(api, sample(STEM))
    found[EXPORT] = _shown(api.get("/api/definitions").value, STEM)
    api.ask("PUT", "/api/vhosts/one")
    found[SAMPLE_OF_VHOST] = _answer(api, of_vhost(), "/one")
    found[EXPORT_OF_VHOST] = _shown(api.get("/api/definitions/one").value)
    return found


def question(name: str) -> str:
    """Return the name of an import in the records."""
    return f"import of {name}"


def _answer(api: Api, document: dict[str, Any], vhost: str = "") -> dict[str, Any]:
    answer = api.ask("POST", f"/api/definitions{vhost}", document)
    return {"status": answer.status, "value": answer.value}


def _imported(api: Api, document: dict[str, Any], vhost: str = "") -> dict[str, Any]:
    before = comparable(api.get("/api/definitions").value)
    answer = _answer(api, document, vhost)
    after = comparable(api.get("/api/definitions").value)
    added = {section: [item for item in after[section] if item not in before[section]] for section in SECTIONS}
    return {**answer, "added": {section: items for section, items in added.items() if items}}


def _shown(document: dict[str, Any], stem: str = "") -> dict[str, Any]:
    """Return a document with sorted sections and the texts of the stem's objects, with 2 and 2.0 distinct."""
    return {
        section: sorted(
            json.dumps(item, sort_keys=True, ensure_ascii=False)
            for item in items
            if owner(section, item).startswith(stem)
        )
        for section, items in document.items()
        if section in SECTIONS
    }


def document_of(shown: dict[str, list[str]]) -> dict[str, Any]:
    """Return the document of such texts."""
    return {section: [json.loads(item) for item in items] for section, items in shown.items()}
